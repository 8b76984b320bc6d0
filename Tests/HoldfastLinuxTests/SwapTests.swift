import Testing

import HoldfastLinux

@Suite struct SwapTests {
  private let titles = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"

  @Test func `there is swap when the kernel lists an area`() {
    #expect(!Swap.isOn(swaps: titles))
    #expect(Swap.isOn(swaps: titles + "/dev/vda2                               partition\t2097148\t\t0\t\t-2\n"))
  }

  @Test func `where the kernel does not say, there may be swap`() {
    #expect(Swap.isOn(swaps: ""))
  }

  @Test(arguments: [
    ("VmLck:\t   21816 kB", true), ("VmLck:\t       0 kB", false), ("VmPin:\t 8 kB", false), ("VmLck:", false),
  ])
  func `memory is locked when the kernel counts any`(line: String, isLocked: Bool) {
    #expect(Swap.isLocked(status: "Name:\tholdfast\nVmSize:\t   30000 kB\n\(line)\nVmHWM:\t 9000 kB\n") == isLocked)
  }
}
