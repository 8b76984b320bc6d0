"""Prints what happens line by line, and remembers which lines did not come out as they must."""


class Story:
    def __init__(self):
        self.count, self.wrong = 0, []

    def heading(self, text):
        print(f"\n{text}", flush=True)

    def step(self, text, detail):
        """A step that went as it must, or an exception would have been raised."""
        print(f"  {text:56}{detail}", flush=True)

    def expect(self, text, expected, seen, detail=""):
        """A line that must come out as `expected`."""
        is_right = seen == expected
        self.count += 1
        if not is_right:
            self.wrong.append(text)
        outcome = expected if is_right else f"{seen}, but it must be: {expected}"
        print(f"{'✓' if is_right else '✗'} {text:56}{outcome}{detail and f', {detail}'}", flush=True)
