import ArgumentParser

extension Failure {
  /// Arguments that do not fit; nil when it is no mistake, but a call for help.
  init?(parsing error: any Error) {
    guard Holdfast.exitCode(for: error) != .success else { return nil }
    let usage = Holdfast.fullMessage(for: error).split(separator: "\n").first { $0.hasPrefix("Usage: ") }
    self.init(.usage, Holdfast.message(for: error).withoutCapital, hint: usage.map { "usage: \($0.dropFirst(7))" })
  }
}

extension String {
  /// Our sentences begin small, after `holdfast:`.
  fileprivate var withoutCapital: String {
    let second = dropFirst().first
    return second?.isLowercase == true ? prefix(1).lowercased() + dropFirst() : self
  }
}
