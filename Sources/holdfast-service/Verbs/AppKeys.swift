#if Service
import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOnline
import HoldfastService

/// A verb that writes a secret of 32 bytes into a file.
protocol SecretFileVerb: AdministrationVerb {
  var out: String { get }
}

extension SecretFileVerb {
  mutating func perform() async throws(ServiceFailure) {
    let fleet = try instance.fleet(instance.configuration())
    var result = try performed(try operation(fleet), fleet)
    let secret = result["secret"]?.text.flatMap { Schema.base64Bytes($0) } ?? []
    guard secret.count == 32 else { throw ServiceFailure(.fault, "the service gave no key") }
    do throws(FileError) { try Files.writeFileAtomically(secret, at: out, overwrite: false) } catch {
      throw ServiceFailure(error, hint: nil)
    }
    result = .object((result.members ?? []).filter { $0.0 != "secret" } + [("file", .string(out))])
    json ? Output.result(result) : Table(result).print()
  }
}

struct ListAppKeys: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the keys of tokens for apps that backends need.")

  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall { OperationCall(name: "listAppKeys") }
}

struct RotateAppKey: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "rotate", abstract: "Make a new key of tokens for apps, which signs after a time.",
    discussion: """
      /.well-known/app-tokens.json has it at once, so that backends know it in time, and has the key before until its tokens have \
      expired. The configuration for apps stays with the first key, with which apps are built.
      """)

  @Option(help: "The time until the key signs, such as 1h.") var after = "1h"
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    guard let now = SystemClock().unixSeconds() else { throw ServiceFailure(.fault, "there is no clock") }
    return OperationCall(
      name: "rotateAppKey", body: [("active", .integer(now + (try seconds(after, of: "--after"))))])
  }
}

struct ShowMessageKey: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show the number in the key for messages, without the key.")

  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall { OperationCall(name: "showMessageKey") }
}

struct RotateMessageKey: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "rotate", abstract: "Replace the key for messages; apps get the new one with their next fetch.")

  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall { OperationCall(name: "rotateMessageKey") }
}

struct MessageSecret: SecretFileVerb {
  static let configuration = CommandConfiguration(
    commandName: "secret", abstract: "Write the key for messages into a file, for backends that check them.",
    discussion: "The file has 32 bytes, and only this user can read it. The log of changes names who wrote it.")

  @Option(help: "The file, which must not exist.", completion: .file()) var out: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall { OperationCall(name: "showMessageSecret") }
}

struct NewDevelopmentKey: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "new", abstract: "Make a development key, which is shown only once and replaces the one before.",
    discussion: """
      Any program with the keys of a registered release that proves the knowledge of the development key is approved as the app \
      development, version 0.0.0. Devices refuse its tokens unless their policy says accept_development.
      """)

  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall { OperationCall(name: "newDevelopmentKey") }
}

struct RemoveDevelopmentKey: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove the development key, which then counts no more.")

  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall { OperationCall(name: "removeDevelopmentKey") }
}

struct ShowDevelopmentKey: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show when the development key was made, without the key.")

  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall { OperationCall(name: "showDevelopmentKey") }
}

struct InitialConfiguration: ServiceVerb {
  static let configuration = CommandConfiguration(
    commandName: "configuration", abstract: "Print the text with which an app finds this service and trusts its key.",
    discussion: """
      The text is no secret, and belongs into the app's package: the app accepts only configurations that this service signed. The \
      addresses are those of public_url in the configuration, unless --service names others.
      """)

  @Option(help: "An address of the service, https://HOST or https://HOST:PORT. Several may be given.")
  var service: [String] = []
  @Option(help: "A pin of the service's public key, as curl takes it. Several may be given.") var pin: [String] = []
  @Option(help: "The file for the text, which must not exist.", completion: .file()) var out: String?
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  mutating func perform() async throws(ServiceFailure) {
    let configuration = try instance.configuration()
    var addresses = configuration.publicAddresses
    if !service.isEmpty {
      do throws(ServiceAddressFault) { addresses = try ServiceAddress.list(service.joined(separator: ",")) } catch {
        throw ServiceFailure(.usage, "--service must be https://HOST or https://HOST:PORT")
      }
    }
    guard !addresses.isEmpty else {
      throw ServiceFailure(
        .malformed, "the configuration has no public_url", hint: "set it, or give --service https://HOST")
    }
    guard pin.allSatisfy({ ServicePin($0) != nil }) else {
      throw ServiceFailure(.usage, "--pin must be sha256// and the base64 of 32 bytes, as curl takes it")
    }
    let key: (id: KeyID, point: P256Point)
    let fleet = try instance.fleet(configuration)
    do throws(FleetFault) { key = try fleet.configurationKey() } catch { throw ServiceFailure(error) }
    let services = addresses.map(\.description).joined(separator: ",")
    var text = "holdfast-configuration:1?key=\(base64URL(key.point.bytes))&service=\(FormData.encoded(services))"
    if !pin.isEmpty { text += "&pin=\(FormData.encoded(pin.joined(separator: ",")))" }
    if let out {
      do throws(FileError) {
        try Files.writeFileAtomically(Array((text + "\n").utf8), at: out, mode: 0o644, overwrite: false)
      } catch {
        throw ServiceFailure(error, hint: nil)
      }
    }
    json
      ? Output.result(.object([("configuration", .string(text)), ("key", .string(hexadecimal(key.id)))]))
      : Output.result(text)
  }
}
#endif
