import HoldfastCore
import HoldfastOpenSSL

/// Accounts that come from other services, or go to another authenticator.
extension Authenticator {
  /// Imports the accounts of key URIs, as a service shows them in a QR code. Either all accounts are imported or none.
  ///
  /// Source: Google's Key URI format.
  ///
  /// - Parameters:
  ///   - text: `otpauth://totp/…` or `otpauth://hotp/…`, a URI for each line, at most 2^20 bytes; or one
  ///     `otpauth-migration://offline?data=…`. It holds secrets: the caller wipes it.
  ///   - protector: A PIN that meets the rules, a key, or nothing. All accounts need the same.
  ///   - random: The source of the salts.
  /// - Returns: the new records, each at the lowest free index of its user.
  /// - Throws: `malformedAccount`; `secretTwice`, `exists` if no index is free, `badRecord`, `weakPIN`; `busy`, `diskFull`,
  ///   `failed`.
  @discardableResult
  public func importAccounts<Random: RandomSource & ~Copyable>(
    _ text: Span<UInt8>, protection protector: borrowing ProtectionSecret, random: inout Random
  ) throws(AuthenticatorFault) -> [Record] {
    guard let format = CredentialFormat.detect(text), format != .pskc else { throw .malformedAccount }
    let credentials: [Credential]
    do throws(ImportFault) { credentials = try Credential.read(text, format: format) } catch {
      throw .malformedAccount
    }
    var added: [NewRecord] = []
    for credential in credentials {
      added.append(
        NewRecord(
          index: try freeIndex(user: credential.user, besides: added), purpose: .otp, credential: credential))
    }
    try add(added, protection: protector, random: &random)
    return try records().filter { record in
      added.contains { $0.index == record.index && $0.credential.user.utf8.elementsEqual(record.user.utf8) }
    }
  }

  /// Exports an account as a key URI, for another authenticator to scan. Whoever sees it can use the account.
  ///
  /// Source: Google's Key URI format.
  ///
  /// - Parameters:
  ///   - record: A record of purpose `otp`.
  ///   - protector: The input that the record's protection requires. A wrong PIN exports a wrong secret.
  ///   - body: Receives the URI, ASCII; the bytes are wiped when it returns.
  /// - Throws: `unsuitableMethod` for another purpose or an OCRA method, `badUser` for a name that a URI cannot hold, `demanded`
  ///   if the device's owner demands a protection, which an exported secret would not have; `protectionMismatch`,
  ///   `notConfirmed`, `interrupted`, `unknownRecord`; `busy`, `failed`.
  public func withExportedAccount<Result>(
    of record: Record, with protector: borrowing ProtectionSecret, _ body: (_ uri: Span<UInt8>) -> Result
  ) throws(AuthenticatorFault) -> Result {
    guard record.purpose == .otp else { throw .unsuitableMethod }
    let uri: SecretBytes
    let credential = try credential(of: record, with: protector)
    do throws(ExportFault) { uri = try credential.otpauthURI() } catch {
      throw error == .unsupportedMethod ? .unsuitableMethod : .badUser
    }
    return body(uri.bytes)
  }
}
