import CBoard

/// Reports a fault on the console and stops the processor. An image's `board_fault`, which C calls, calls this.
///
/// Source: Armv7-M Architecture Reference Manual §B3.2.15.
public func reportFault(frame: UnsafePointer<UInt32>, exception: UInt32) -> Never {
  let status = board_load(0xE000_ED28)
  Console.write("\nfault: exception ")
  Console.write(exception)
  report(", status ", status)
  report(", hard ", board_load(0xE000_ED2C))
  // If the registers could not be stacked, there are none to read.
  if unsafe status & (1 << 4 | 1 << 12) != 0 || MainStack.isOverrun(by: frame) {
    Console.write(", stack overflow")
  } else {
    report(", pc ", unsafe frame[6])
    report(", lr ", unsafe frame[5])
  }
  if status & 1 << 7 != 0 { report(", address ", board_load(0xE000_ED34)) }
  if status & 1 << 15 != 0 { report(", address ", board_load(0xE000_ED38)) }
  Console.write("\n")
  stop()
}

private func report(_ name: StaticString, _ word: UInt32) {
  Console.write(name)
  Console.write(hexadecimal: word)
}

/// Stops the processor permanently: interrupts stay disabled.
public func stop() -> Never {
  board_hold_interrupts()
  while true { board_sleep() }
}

/// The stack of the main program, at the bottom of RAM. Reset fills it with a pattern, which shows how much was used.
public enum MainStack {
  /// The length of the stack, in bytes.
  public static var byteCount: Int { unsafe 4 * (board_main_stack_limit() - board_main_stack_start()) }

  /// The most bytes of the stack that were used since reset.
  public static var usedByteCount: Int {
    var word = unsafe board_main_stack_start()
    while unsafe word < board_main_stack_limit() && word.pointee == BOARD_STACK_PAINT { unsafe word += 1 }
    return unsafe 4 * (board_main_stack_limit() - word)
  }

  /// Wipes the unused part of the stack, where calls that have returned left secrets and BearSSL's intermediate values.
  public static func wipe() {
    board_wipe_stack()
  }

  /// Returns whether the registers that the processor stacked at `frame` are below the stack, where there is no memory.
  static func isOverrun(by frame: UnsafePointer<UInt32>) -> Bool {
    unsafe frame < board_main_stack_start()
  }
}
