import ArgumentParser
import HoldfastAuthenticator
import HoldfastOpenSSL
import HoldfastCore
import HoldfastFormats
import HoldfastTransport

/// The option for a code from the device's owner, which is never an argument itself.
struct OwnersCodeOptions: ParsableArguments {
  @Option(
    help:
      "A file with the code from the device's owner, or - for standard input. By default, the command prompts for it.",
    completion: .file())
  var code: String?

  func read() throws(Failure) -> OneUseCode {
    let text: SecretBytes
    if let code {
      // Other processes can read the arguments, and anyone who has the code can become the user.
      let argument = Array(code.utf8)
      guard OneUseCode(argument.span) == nil else {
        throw Failure(
          secretGivenTo: "--code",
          hint: "give it in a file, or leave out --code and type it; the code was exposed, so ask for another one"
        )
      }
      text = try SecretInput.lineOrAnswer(code, of: "--code", question: "code", limit: 64)
    } else {
      text = try SecretPrompt.ask("code", option: "--code with a file, or - for standard input")
    }
    guard let code = OneUseCode(text.bytes) else {
      throw Failure(
        .malformed, "that is not a code from a device's owner, or it was mistyped",
        hint: "such a code has 20 letters and digits and a check character: XXXX-XXXX-XXXX-XXXX-XXXX-X")
    }
    return code
  }
}

struct PairingOptions: ParsableArguments {
  @Flag(help: "Allow the Bluetooth device to pair with this host during the connection; requires CAP_NET_ADMIN.")
  var pair = false

  /// Creates an acceptor that permits the pairing while it exists; returns nil if pairing was not requested.
  func acceptor(for endpoint: Endpoint) throws(Failure) -> PairingAcceptor? {
    guard pair else { return nil }
    guard case .bluetooth(let device, _) = endpoint.address else {
      throw Failure(.usage, "--pair is only for Bluetooth, and \(endpoint) is not a Bluetooth endpoint")
    }
    do throws(BluetoothError) { return try PairingAcceptor(adapter: endpoint.adapter, peer: device) } catch {
      throw Failure(error, adapter: endpoint.adapter.map { "hci\($0)" })
    }
  }
}
