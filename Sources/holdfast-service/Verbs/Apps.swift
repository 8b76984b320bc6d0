#if Service
import ArgumentParser
import Glibc
import HoldfastFormats
import HoldfastLinux
import HoldfastService

struct AddDomain: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Add an API domain for which attested apps get tokens, or change it.")

  @Argument(help: "The DNS name, in lower case.") var name: String
  @Option(help: "The claim aud of its tokens; by default the name.") var audience: String?
  @Option(help: "The signature of its tokens: ES256 or HS256.") var algorithm = "ES256"
  @Option(help: "The lifetime of its tokens, such as 5m.") var lifetime = "5m"
  @Flag(help: "The domain is only pinned, and needs no token.") var unprotected = false
  @Flag(help: "Attestation tokens for measurement tokens may name this domain.") var measurement = false
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    let body: [(String, JSONValue)] = [
      ("name", .string(name)), ("algorithm", .string(algorithm)),
      ("lifetime_seconds", .integer(try seconds(lifetime, of: "--lifetime"))), ("unprotected", .bool(unprotected)),
      ("measurement", .bool(measurement)),
    ]
    return OperationCall(name: "addDomain", body: body + (audience.map { [("audience", .string($0))] } ?? []))
  }
}

struct RemoveDomain: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove an API domain with its pins.")

  @Argument(help: "The DNS name.") var name: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(name: "removeDomain", key: name)
  }
}

struct DomainSecret: SecretFileVerb {
  static let configuration = CommandConfiguration(
    commandName: "secret", abstract: "Write the key of a domain's HS256 tokens into a file, for its backend.",
    discussion: "The file has 32 bytes, and only this user can read it. The log of changes names who wrote it.")

  @Argument(help: "The DNS name.") var name: String
  @Flag(help: "Write the key that the next domain rotate brings, so that the backend knows it in time.") var next =
    false
  @Option(help: "The file, which must not exist.", completion: .file()) var out: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(name: "showDomainSecret", key: name, body: [("next", .bool(next))])
  }
}

struct RotateDomain: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "rotate", abstract: "Replace the key of a domain's HS256 tokens, at once.",
    discussion: "Give its backend the new key before: domain secret NAME --next --out FILE.")

  @Argument(help: "The DNS name.") var name: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(name: "rotateDomain", key: name)
  }
}

struct AddPin: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Pin a public key of a domain, or of every domain.")

  @Argument(help: "The domain, or '*' for every domain.") var domain: String
  @Argument(help: "The pin: sha256// and the base64 of SHA-256 over the SubjectPublicKeyInfo.") var pin: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(name: "addPin", body: [("domain", .string(domain)), ("pin", .string(pin))])
  }
}

struct RemovePin: AdministrationVerb {
  static let configuration = CommandConfiguration(commandName: "remove", abstract: "Remove a pin.")

  @Argument(help: "The domain, or '*' for every domain.") var domain: String
  @Argument(help: "The pin.") var pin: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(name: "removePin", body: [("domain", .string(domain)), ("pin", .string(pin))])
  }
}

struct ForcePins: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "force", abstract: "Force the present pins.",
    discussion: "An app that hears of it connects to no domain before it has the present configuration or a newer one.")

  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall { OperationCall(name: "forcePins") }
}

struct SetString: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Set a secure string, which attested apps get.",
    discussion: """
      The value comes from a file or from standard input, 1 to 4096 bytes of UTF-8. A line end at its end is left out. It is \
      stored encrypted, and nothing shows it again.
      """)

  @Argument(help: "The name, at most 64 bytes.") var name: String
  @Option(name: .customLong("from"), help: "The file with the value; - for standard input.", completion: .file())
  var file = "-"
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    var bytes: [UInt8]
    if file == "-" {
      bytes = try Self.standardInput(limit: 4098)
    } else {
      do throws(FileError) { bytes = try Files.readFile(at: file, limit: 4098) } catch {
        guard error.kind == .tooLarge else { throw ServiceFailure(error, hint: nil) }
        throw ServiceFailure(.malformed, "the value must be 1 to 4096 bytes of UTF-8")
      }
    }
    if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    guard let value = String(validating: bytes, as: UTF8.self), (1...4096).contains(bytes.count) else {
      throw ServiceFailure(.malformed, "the value must be 1 to 4096 bytes of UTF-8")
    }
    return OperationCall(name: "setString", body: [("name", .string(name)), ("value", .string(value))])
  }

  /// Reads standard input to its end, but not more than one byte beyond the limit.
  private static func standardInput(limit: Int) throws(ServiceFailure) -> [UInt8] {
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 4096)
    while bytes.count <= limit {
      let count = unsafe piece.withUnsafeMutableBytes { unsafe read(STDIN_FILENO, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw ServiceFailure(.fault, "standard input could not be read") }
      guard count > 0 else { break }
      bytes += piece[..<count]
    }
    return bytes
  }
}

struct RemoveString: AdministrationVerb {
  static let configuration = CommandConfiguration(commandName: "remove", abstract: "Remove a secure string.")

  @Argument(help: "The name.") var name: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(name: "removeString", key: name)
  }
}
#endif
