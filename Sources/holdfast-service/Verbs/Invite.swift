#if Service
import ArgumentParser
import HoldfastFormats
import HoldfastOnline
import HoldfastQRCode
import HoldfastService

struct Invite: AdministrationVerb {
  static let configuration = CommandConfiguration(
    abstract: "Make an invitation: a one-use code with which one prover gets one token for one device.",
    discussion: """
      The code is shown only once. Its QR code also names the service, if the configuration has a public_url, and \
      holdfast enroll --invitation takes either.
      """)

  @Option(help: "The device: its id or its label.") var device: String
  @Option(help: "The lifetime of the code, such as 90d, 12h or 30m.") var validFor = "7d"
  @OptionGroup var permission: PermissionOptions
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false
  @Flag(inversion: .prefixedNo, help: "Draw a QR code; by default on a terminal.") var qr: Bool?

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(
      name: "invite",
      body: [
        ("device", .string(try fleet.device(named: device))),
        ("valid_seconds", .integer(try seconds(validFor, of: "--valid-for"))),
      ]
        + permission.members)
  }

  func illustrate(_ result: JSONValue, _ configuration: ServiceConfiguration) throws(ServiceFailure) {
    guard qr ?? Output.isTerminal else { return }
    let text: String
    do throws(InvitationFault) {
      text = try Invitation(code: result["code"]?.text ?? "", services: configuration.publicAddresses).text
    } catch { throw ServiceFailure(.fault, "the service gave no code") }
    let bytes = Array(text.utf8)
    do throws(QRCodeFault) {
      let code = try QRCode(encoding: bytes.span)
      Output.result(
        lines: code.drawing(contrast: Output.hasColour ? .coloured : .darkOnLight).withBytes { [UInt8]($0) })
    } catch { throw ServiceFailure(.fault, "the invitation does not fit into a QR code") }
  }
}
#endif
