import HoldfastAuthenticator
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// The change of a PIN or key, which needs no device.
extension AuthenticatorUser {
  /// Changes what protects a record's secret, and those of all records of the user that share its protection.
  ///
  /// A mistyped old PIN cannot be recognised, and it would destroy the secret. Therefore an undo code is shown first, which restores
  /// the old state (``undoChange(of:under:)``) until a code is accepted by the device and `synchronise`
  /// has heard of it, or until ``confirmChange(of:index:)``.
  ///
  /// - Parameters:
  ///   - record: a record of purpose `otp` or `seal`.
  ///   - old: the PIN or key that the record needs now. A wrong PIN is not detected.
  ///   - new: a PIN that meets the rules, a key, or nothing.
  ///   - show: shows the undo code, 34 bytes of ASCII, to the user, and returns whether the user has it. If it returns
  ///     false, nothing changes, and the undo code is worthless.
  /// - Returns: whether the protection was changed.
  /// - Throws: ``UserExchangeError/authenticator(_:)`` with `weakPIN`, `demanded` if the device's owner demands more,
  ///   `protectionMismatch`, `changeOpen` while the previous change is neither confirmed nor undone, `unknownRecord`; `busy`, `diskFull`, `failed`; `interrupted` if the undo code must be used.
  @discardableResult
  public func changeProtection(
    of record: Record, from old: borrowing ProtectionSecret, to new: borrowing ProtectionSecret,
    showing show: (_ undoCode: Span<UInt8>) -> Bool
  ) throws(UserExchangeError) -> Bool {
    let authenticator = try open()
    return try using { () throws(AuthenticatorFault) in
      var random = SystemRandom()
      try authenticator.checkChange(of: record, from: old, to: new)
      let code = try authenticator.prepareChange(of: record, random: &random)
      guard try code.withText({ show($0) }) else { return false }
      try authenticator.change(record, from: old, to: new, under: code, random: &random)
      return true
    }
  }

  /// Restores the state from before the last change of protection.
  ///
  /// - Parameters:
  ///   - user: the name of the user.
  ///   - undoCode: the undo code that was shown, ASCII.
  /// - Throws: ``UserExchangeError/authenticator(_:)`` with `malformedUndoCode`, `wrongUndoCode`, `noChange`; `busy`, `diskFull`, `failed`.
  public func undoChange(of user: String, under undoCode: Span<UInt8>) throws(UserExchangeError) {
    let authenticator = try open()
    let code = try using { () throws(AuthenticatorFault) in try UndoCode(undoCode) }
    try using { () throws(AuthenticatorFault) in try authenticator.undoChange(user: user, under: code) }
  }

  /// Confirms that the new PIN or key works, and forgets the old state.
  ///
  /// - Parameters:
  ///   - user: the name of the user.
  ///   - index: the record whose code was accepted; nil for all records of the user.
  /// - Returns: whether there was a change to confirm.
  /// - Throws: ``UserExchangeError/authenticator(_:)`` with `unknownRecord`, `interrupted`; `busy`, `diskFull`, `failed`.
  @discardableResult
  public func confirmChange(of user: String, index: Int? = nil) throws(UserExchangeError) -> Bool {
    let authenticator = try open()
    return try using { () throws(AuthenticatorFault) in
      try authenticator.confirmProtection(user: user, index: index)
    }
  }
}
