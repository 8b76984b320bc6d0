import Glibc

/// An `errno`.
public struct SystemError: Error, Equatable, Sendable {
  /// The number.
  public let number: Int32

  /// Makes an error of a number.
  ///
  /// - Parameter number: An `errno`, such as `ENOSPC`.
  public init(_ number: Int32) {
    self.number = number
  }
}

/// Repeats a system call for as long as a signal interrupts it; -1 is thrown as `errno`.
@discardableResult
func retrying<Number: SignedInteger>(_ call: () -> Number) throws(SystemError) -> Number {
  while true {
    let result = call()
    if result != -1 { return result }
    let number = errno
    if number != EINTR { throw SystemError(number) }
  }
}
