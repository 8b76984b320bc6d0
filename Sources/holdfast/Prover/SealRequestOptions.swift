import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastQRCode
import HoldfastUser

/// The options with which a user is asked for a seal.
struct SealRequestOptions: ParsableArguments {
  @Flag(help: "Do not send the command, but get the device's request for its seal, which holdfast seal shows the user.")
  var sealRequest = false

  @Flag(help: "With --seal-request: draw the request as a QR code.")
  var qr = false

  @Option(help: "With --seal-request: the file for the request, which must not exist.", completion: .file())
  var out: String?

  /// Checks the options, before anything is sent.
  func check(_ output: OutputOptions, _ codes: CodeOptions) throws(Failure) {
    guard sealRequest else {
      guard !qr, out == nil else { throw Failure(.usage, "--qr and --out require --seal-request") }
      return
    }
    guard codes.user != nil, codes.otp == nil, codes.seal == nil else {
      throw Failure(.usage, "--seal-request requires --user, and excludes --otp and --seal")
    }
    guard (qr ? 1 : 0) + (out == nil ? 0 : 1) + (output.json ? 1 : 0) < 2 else {
      throw Failure(.usage, "--qr, --out and --json cannot be combined")
    }
  }

  /// Gets the request from the device, and shows or writes it.
  func get(
    by inquiry: DeviceInquiry, user: String, command: String, parameters: [String], _ output: OutputOptions
  ) throws(Failure) {
    let name = try BoundedText<32>(userArgument: user).description
    let sealed: SealRequest
    do throws(SealFault) {
      sealed = try SealRequest(command: command, parameters: parameters, fieldByteLimit: 64)
    } catch { throw Failure(error, fieldByteLimit: 64) }
    guard sealed.parameters.count <= SealRequestContents.maximumParameterCount else {
      throw Failure(.usage, "a request for a seal can have at most 6 parameters")
    }
    let request = try inquiry.ask(UserCommandName.sealRequest) { (prover, options) throws(UserExchangeError) in
      try AuthenticatorUser.sealRequest(for: name, over: sealed, as: prover, at: inquiry.endpoint, options: options)
    }
    if output.json {
      Console.result(
        .object([
          ("request", .string(request.text)), ("user", .string(name)),
          ("device_id", .string(hexadecimal(request.device))),
          ("expires", request.expires.map { .integer($0) } ?? .null),
        ]))
      return
    }
    let bytes = Array(request.text.utf8)
    if qr {
      let drawing: SecretBytes
      do throws(QRCodeFault) {
        drawing = try QRCode(encoding: bytes.span).drawing(contrast: Console.hasColour ? .coloured : .darkOnLight)
      } catch { throw Failure(.fault, "the request does not fit into a QR code") }
      Console.result(lines: drawing.bytes)
    } else if let out {
      let line = bytes + [0x0a]
      do throws(FileError) { try Files.writeFileAtomically(line.span, at: out, overwrite: false) } catch {
        throw Failure(making: error)
      }
      Console.result("\(out): request for the seal of \(name)")
    } else {
      Console.result(request.text)
    }
  }
}
