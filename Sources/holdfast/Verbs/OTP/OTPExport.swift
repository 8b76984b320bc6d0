import ArgumentParser
import HoldfastAuthenticator
import HoldfastJSON
import HoldfastOpenSSL

struct OTPExport: Verb {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Show an account with its secret, as an otpauth:// URI or a QR code.",
    discussion: "Who sees it has the account. A wrong PIN exports a wrong secret, and nothing here tells.",
    examples: [
      "holdfast otp export --authenticator keys --qr",
      "holdfast otp export --authenticator keys --user alice --index 1 > uri.txt",
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var record: RecordOptions
  @OptionGroup var unlocking: UnlockingOptions
  @OptionGroup var output: OutputOptions

  @Flag(help: "Draw a QR code for a telephone.")
  var qr = false

  mutating func perform() throws(Failure) {
    guard !(qr && output.json) else { throw Failure(.usage, "--qr and --json exclude each other") }
    let folder = try authenticator.open()
    let record = try record.find(.otp, in: folder, authenticator)
    if record.protection == .pin { Console.warning("a wrong PIN exports a wrong secret, and nothing here tells") }
    let secret = try unlocking.secret(for: record.protection.mode)
    let credential = try authenticator.using { () throws(AuthenticatorFault) in
      try folder.credential(of: record, with: secret)
    }
    let uri: SecretBytes
    do throws(ExportFault) { uri = try credential.otpauthURI() } catch { throw Failure(error) }
    if qr {
      let drawing: SecretBytes
      do throws(QRCodeFault) {
        drawing = try QRCode(encoding: uri.bytes).drawing(
          contrast: Console.hasColour ? .coloured : .darkOnLight)
      } catch { throw Failure(.fault, "the account does not fit a QR code") }
      Console.result(lines: drawing.bytes)
    } else if output.json {
      Console.result(
        .object([
          ("uri", .string(text(uri))), ("user", .string(record.user)), ("index", .integer(UInt64(record.index))),
        ]))
    } else {
      Console.result(text(uri))
    }
  }

  private func text(_ secret: borrowing SecretBytes) -> String {
    var bytes: [UInt8] = []
    for index in secret.bytes.indices { bytes.append(secret.bytes[index]) }
    return String(decoding: bytes, as: UTF8.self)
  }
}
