import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastProver

struct ServicePostureRules: Verb {
  static let configuration = CommandConfiguration(
    commandName: "posture-rules",
    abstract: "Sign rules about the posture of provers with the issuer's key.",
    discussion: """
      The file with the rules is JSON: "number", "default" and "unknown" (each ignore, warn, refuse or wipe), "rules" with the names of \
      findings, and optionally "until" in Unix seconds. A prover installs only rules whose number is higher than that of its \
      present ones. The command does not remember numbers.
      """,
    examples: [
      "holdfast service posture-rules --dir service rules.json > rules.jws"
    ])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "The rules, as JSON; - is standard input.", completion: .file())
  var file: String

  mutating func perform() throws(Failure) {
    let bytes = try Input.read(file, limit: 65_536)
    let value: JSONValue
    do throws(JSONFault) { value = try JSONValue(parsing: bytes, byteLimit: 65_536) } catch {
      throw Failure(.malformed, "\(file) is not strict JSON")
    }
    guard let now = SystemClock().unixSeconds() else { throw Failure(.fault, "there is no clock") }
    let claims: JSONValue
    do throws(JSONMistake) { claims = try PostureRules.claims(of: JSONMember(value), issued: now) } catch {
      throw Failure(.malformed, error.located(in: bytes).text(in: file))
    }
    let folder = service.folder
    let text = try serving(service.dir) { () throws(ServiceFolderFault) in
      try folder.sign(document: claims, type: PostureRules.type)
    }
    guard text.count <= PostureRules.maximumByteCount else {
      throw Failure(.malformed, "the rules are too long: \(text.count) bytes after signing")
    }
    let signed = String(decoding: text, as: UTF8.self)
    if output.json {
      Console.result(.object([("number", claims["num"] ?? .null), ("rules", .string(signed))]))
    } else {
      Console.result(signed)
    }
  }
}
