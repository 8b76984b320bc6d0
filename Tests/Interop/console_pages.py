"""The pages of the console as a client without a browser sees them: requests, and what the HTML contains."""

import contextlib
import html.parser
import urllib.parse

ROOT = "/console"
COOKIE = "__Host-holdfast-session"

# Everything that a page may consist of. A value that was not escaped would add an element or an attribute.
ELEMENT_NAMES = """
html head meta title link body a header form input span button div nav details summary ul ol li main h1 h2 p section table
caption thead tbody tr th td dl dt dd time label fieldset legend select option textarea figure svg line rect path strong output
"""
ATTRIBUTE_NAMES = """
lang charset name content rel type href class action method value id tabindex role scope for autocomplete spellcheck maxlength
required autofocus checked selected rows datetime x y x1 x2 y1 y2 rx width height d fill viewbox preserveaspectratio
shape-rendering data-label aria-current aria-describedby aria-hidden aria-label aria-labelledby
"""
ELEMENTS, ATTRIBUTES = set(ELEMENT_NAMES.split()), set(ATTRIBUTE_NAMES.split())
VOID = {"meta", "link", "input", "line"}


class Page(html.parser.HTMLParser):
    """One page: its elements in order, with attributes, and the text in each."""

    def __init__(self, path, text):
        super().__init__(convert_charrefs=True)
        self.path, self.elements, self.open = path, [], []
        self.feed(text)
        self.close()
        assert not self.open, (path, self.open)

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), (self.path, tag, names)
        element = {"tag": tag, "attributes": dict(attributes), "text": "", "inside": list(self.open)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1]["tag"] == tag, (self.path, tag)
        self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag, **attributes):
        return [
            element
            for element in self.elements
            if element["tag"] == tag
            and all(element["attributes"].get(name.rstrip("_")) == value for name, value in attributes.items())
        ]

    def texts(self, tag, **attributes):
        return [" ".join(element["text"].split()) for element in self.all(tag, **attributes)]

    @property
    def text(self):
        return " ".join(self.elements[0]["text"].split())

    @property
    def links(self):
        """The pages of the console to which this one leads."""
        links = [element["attributes"].get("href", "") for element in self.all("a")]
        return [link for link in links if link.startswith(ROOT)]

    @property
    def form_token(self):
        return self.all("input", name="form_token")[0]["attributes"]["value"]

    def rows(self, identifier=None):
        """The texts of a table's cells, row by row."""
        tables = self.all("table", id=identifier) if identifier else self.all("table")
        rows = [row for row in self.all("tr") if tables and any(outer is tables[0] for outer in row["inside"])]
        cells = [[cell for cell in self.all("td") if any(outer is row for outer in cell["inside"])] for row in rows]
        return [[" ".join(cell["text"].split()) for cell in row] for row in cells if row]


class Visitor:
    """A client of the console that keeps a cookie, and sends what a browser sends with a form."""

    def __init__(self, instance, token=None):
        self.instance, self.cookie = instance, None
        self.origin = f"http{'s' if instance.is_secure else ''}://127.0.0.1:{instance.port}"
        if token is not None:
            status, headers, _ = self.post(f"{ROOT}/sign-in", {"token": token})
            assert status == 303, status
            self.cookie = headers["Set-Cookie"].split(";")[0].split("=", 1)[1]

    def ask(self, method, path, body=None, headers=()):
        sent = {"Cookie": f"first=1; {COOKIE}={self.cookie}"} if self.cookie else {}
        with contextlib.closing(self.instance.connect()) as connection:
            connection.request(method, path, body, {**sent, **dict(headers)})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()

    def get(self, path):
        status, _, text = self.ask("GET", path)
        assert status == 200, (path, status, text[-2000:])
        return Page(path, text)

    def post(self, path, fields, **headers):
        """Sends a form. A header that is None is left out."""
        sent = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": self.origin,
            "Sec-Fetch-Site": "same-origin",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        body = urllib.parse.urlencode(fields, doseq=True)
        return self.ask("POST", path, body, {name: value for name, value in sent.items() if value is not None})

    def send(self, path, **fields):
        """Opens the form of an operation, fills it in, and returns status, headers and page of the answer."""
        token = self.get(path).form_token
        status, headers, text = self.post(path, {"form_token": token, **fields})
        return status, headers, Page(path, text) if text else None

    def crawl(self, limit=400):
        """Every page to which links lead from the first one, each with its headers."""
        found, waiting = {}, [ROOT]
        while waiting:
            path = waiting.pop(0)
            if path in found:
                continue
            assert len(found) < limit, "the pages have no end"
            status, headers, text = self.ask("GET", path)
            assert status == 200, (path, status, text)
            found[path] = (headers, Page(path, text))
            waiting += found[path][1].links
        return found
