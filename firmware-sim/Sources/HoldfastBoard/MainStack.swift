import CBoard

/// The stack of the main program, at the bottom of RAM. Reset paints it, so that what was used of it can be told.
public enum MainStack {
  /// How many bytes it has.
  public static var byteCount: Int { unsafe 4 * (board_main_stack_limit() - board_main_stack_start()) }

  /// How many bytes were used, at most, since reset.
  public static var usedByteCount: Int {
    var word = unsafe board_main_stack_start()
    while unsafe word < board_main_stack_limit() && word.pointee == BOARD_STACK_PAINT { unsafe word += 1 }
    return unsafe 4 * (board_main_stack_limit() - word)
  }

  /// Wipes what calls that have returned left behind: moved secrets, and what BearSSL computed with.
  public static func wipe() {
    board_wipe_stack()
  }

  /// Whether what the processor stacked at `frame` lies below it, where nothing is.
  static func isOverrun(by frame: UnsafePointer<UInt32>) -> Bool {
    unsafe frame < board_main_stack_start()
  }
}
