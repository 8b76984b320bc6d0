#if Service
import ArgumentParser
import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastService

/// The kinds of records.
enum RecordKind: String, ExpressibleByArgument, CaseIterable {
  case devices, images, provers, users, tokens, invitations, requests, refusals, audits, keys, operators, domains, pins,
    strings,
    codes, changes, bulletins, deliveries, reach, timeline, auditLogs = "audit-logs", minimumVersions =
    "minimum-versions", keyOrders = "key-orders", userOrders = "user-orders"

  /// The operation's name after `list`.
  var plural: String { rawValue.split(separator: "-").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined() }
}

struct List: AdministrationVerb {
  static let configuration = CommandConfiguration(
    abstract: "List records: \(RecordKind.allCases.map(\.rawValue).joined(separator: ", ")).")

  @Argument(help: "The kind of the records.") var kind: RecordKind
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false
  @Option(help: "The end of the page before.") var after: String?
  @Option(help: "The number of records, at most 1000.") var limit: UInt64?
  @Option(
    help: "Only tokens, audit entries, bulletins, versions or orders for this device, or the device of a timeline.")
  var device: String?
  @Option(help: "Only tokens of this prover, revoked ones for reach, or bulletins that revoke one of them.")
  var prover: String?
  @Option(help: "Only bulletins that revoke this token, or the revoked token of reach.") var token: String?
  @Option(help: "Only tokens or audit entries of this user.") var user: String?
  @Option(help: "Only audit entries with this event.") var event: String?
  @Option(help: "Only audit entries from this time on, such as 2026-11-22T18:00:00Z, or in Unix seconds.")
  var since: String?
  @Option(help: "Only audit entries from before this time.") var until: String?
  @Option(help: "Only devices from whose audit log nothing new came for this number of days.") var silentDays: UInt64?
  @Option(help: "Only requests in this state.") var status: String?
  @Option(help: "Only refusals with this response code.") var code: String?

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    let options = [
      ("after", after), ("limit", limit.map { String($0) }), ("device", device), ("prover", prover), ("user", user),
      ("token", token), ("silent_days", silentDays.map { String($0) }),
      ("event", event), ("status", status), ("code", code),
      ("since", try unixSeconds(since, of: "--since").map { String($0) }),
      ("until", try unixSeconds(until, of: "--until").map { String($0) }),
    ]
    return OperationCall(
      name: "list" + kind.plural, query: options.compactMap { name, value in value.map { (name, $0) } })
  }
}

struct Show: AdministrationVerb {
  static let configuration = CommandConfiguration(abstract: "Show one record.")

  @Argument(help: "The kind of the record.") var kind: RecordKind
  @Argument(help: "Its id, or its name.") var id: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(name: "show" + kind.plural.dropLast(), key: id)
  }
}

struct Revoke: AdministrationVerb {
  enum Kind: String, ExpressibleByArgument, CaseIterable {
    case token, prover, user, device, invitation

    var operation: String { "revoke" + rawValue.prefix(1).uppercased() + rawValue.dropFirst() }
  }

  static let configuration = CommandConfiguration(
    abstract: "Revoke a token, or all tokens of a prover, a user or a device.",
    discussion: """
      The service then issues none of them again. A device is offline: it learns of a revocation from a bulletin that a \
      prover brings, from a token of a higher generation (revoke device, device change raise-generation), or when a token expires.
      """)

  @Argument(help: "The kind of the record.") var kind: Kind
  @Argument(help: "Its id, or the user's name.") var id: String
  @Option(help: "The reason, which operators see.") var reason: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(name: kind.operation, key: id, body: kind == .invitation ? [] : [("reason", .string(reason))])
  }
}

struct Reinstate: AdministrationVerb {
  enum Kind: String, ExpressibleByArgument, CaseIterable {
    case prover, user
  }

  static let configuration = CommandConfiguration(abstract: "Let a revoked prover or user enrol again.")

  @Argument(help: "The kind of the record.") var kind: Kind
  @Argument(help: "Its id, or the user's name.") var id: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(name: kind == .prover ? "reinstateProver" : "reinstateUser", key: id)
  }
}

struct ApproveImage: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "approve", abstract: "Approve an executable as a build of the newest release in a key file.")

  @Argument(help: "The executable.", completion: .file()) var image: String
  @Option(help: "The app's name, at most 64 bytes.") var subject: String
  @Option(help: "The app's version, three numbers.") var version: String
  @Option(
    help: "The key file that the executable was built with; by default the key that everybody knows.",
    completion: .file())
  var proofKeys: String?
  @Option(help: "The maker's manifest of the release, JSON.", completion: .file()) var manifest: String?
  @Option(help: "The maker's signature of the manifest, as openssl dgst writes it.", completion: .file())
  var signature: String?
  @Option(help: "The maker's public key, in PEM.", completion: .file()) var maker: String?
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    let digests: (flat: Digest, tree: Digest)
    let interpreter: String?
    do throws(MeasurementError) {
      digests = try ExecutableImage.digests(of: image)
      interpreter = try ExecutableImage.interpreter(at: image)
    } catch { throw ServiceFailure(.malformed, "\(image) cannot be read as an executable") }
    if let interpreter, proofKeys != nil {
      throw ServiceFailure(
        .malformed, "\(image) is an interpreter (\(interpreter)), so its evidence does not show which program it runs",
        hint: "leave out --proof-keys: interpreters can be approved only with the default key")
    }
    return OperationCall(
      name: "approveImage",
      body: [
        ("digest", .string(hexadecimal(digests.flat))), ("tree_digest", .string(hexadecimal(digests.tree))),
        ("subject", .string(subject)), ("version", try versionNumbers(version, of: "--version")),
        ("root", .string(try root())),
      ] + (try signedManifest()))
  }

  private func signedManifest() throws(ServiceFailure) -> [(String, JSONValue)] {
    guard let manifest, let signature, let maker else {
      guard manifest == nil, signature == nil, maker == nil else {
        throw ServiceFailure(.usage, "--manifest, --signature and --maker need each other")
      }
      return []
    }
    let members: [(String, JSONValue)]
    do throws(FileError) {
      let text = String(
        validating: try Files.readFile(at: manifest, limit: ReleaseManifest.maximumByteCount), as: UTF8.self)
      let key = String(validating: try Files.readFile(at: maker, limit: 4096), as: UTF8.self)
      members = [("manifest", .string(text ?? "")), ("maker_key", .string(key ?? ""))]
    } catch { throw ServiceFailure(error, hint: nil) }
    return members + [("signature", .string(try base64(ofSignature: signature)))]
  }

  /// The newest root in the key file, in hexadecimal digits.
  private func root() throws(ServiceFailure) -> String {
    let roots: ReleaseRoots
    do {
      guard let proofKeys else { return try Self.text(ReleaseRoots.default()) }
      let bytes = try Files.readFile(at: proofKeys, limit: ReleaseRoots.maximumByteCount, requirements: .secret)
      roots = try ReleaseRoots(parsing: bytes.span)
    } catch let error as FileError { throw ServiceFailure(error) } catch {
      throw ServiceFailure(
        .malformed, "\(proofKeys ?? "") is not a key file", hint: "holdfast proof-keys --new makes one")
    }
    return Self.text(roots)
  }

  private static func text(_ roots: borrowing ReleaseRoots) -> String {
    roots.root(at: 0).withBytes { hexadecimal($0) }
  }
}

extension ApproveImage {
  func illustrate(_ result: JSONValue, _ configuration: ServiceConfiguration) throws(ServiceFailure) {
    let version: AppVersion?
    do throws(MeasurementError) { version = try LibraryVersion.find(inProgramAt: image) } catch {
      throw ServiceFailure(.malformed, "\(image) cannot be read as an executable")
    }
    guard let version, version < LibraryVersion.own else { return }
    Output.note(
      "\(image) contains version \(version.text) of Holdfast's library; the newest that is known is \(LibraryVersion.own.text)"
    )
  }
}

struct WithdrawImage: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "withdraw", abstract: "Withdraw the approval of an executable.")

  @Argument(help: "Its digest, 64 hexadecimal digits.") var digest: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(name: "withdrawImage", key: digest)
  }
}

struct ApproveRequest: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "approve", abstract: "Approve a request, so that its prover gets a token.")

  @Argument(help: "The request's id.") var id: String
  @OptionGroup var permission: PermissionOptions
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(name: "approveRequest", key: id, body: permission.members)
  }
}

struct RefuseRequest: AdministrationVerb {
  static let configuration = CommandConfiguration(commandName: "refuse", abstract: "Refuse a request.")

  @Argument(help: "The request's id.") var id: String
  @Option(help: "The reason, which the prover sees.") var reason: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(name: "refuseRequest", key: id, body: [("reason", .string(reason))])
  }
}

/// The options for the token that an invitation or a decision permits.
struct PermissionOptions: ParsableArguments {
  @Option(help: "The only user whose codes go with the token.") var user: String?
  @Option(help: "The commands that the token allows, with commas; by default those of the policy.") var commands:
    String?
  @Option(help: "The number of rounds that the device accepts; by default that of the policy.") var uses: UInt64?

  var members: [(String, JSONValue)] {
    var members: [(String, JSONValue)] = []
    if let user { members.append(("user", .string(user))) }
    if let commands {
      members.append(("commands", .array(commands.split(separator: ",").map { .string(String($0)) })))
    }
    if let uses { members.append(("maximum_uses", .integer(uses))) }
    return members
  }
}

/// Parses a time span, such as 90d, 12h, 30m or 45s.
func seconds(_ text: String, of option: String) throws(ServiceFailure) -> UInt64 {
  guard let seconds = spanSeconds(text) else {
    throw ServiceFailure(.usage, "\(option) must be a number with s, m, h or d, such as 90d")
  }
  return seconds
}

/// Parses a time span, such as 90d, 12h, 30m or 45s; nil for any other text.
func spanSeconds(_ text: String) -> UInt64? {
  let units: [Character: UInt64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
  guard let unit = text.last.flatMap({ units[$0] }), let number = UInt64(text.dropLast()), number < 1 << 32 else {
    return nil
  }
  return number * unit
}

struct AddOperator: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Make an operator's token, which is shown only once.")

  @Argument(help: "The name, which no operator had before.") var name: String
  @Option(help: "The permissions with commas: read, report, approve, revoke, admin.") var scopes: String
  @Option(help: "The lifetime of the token, such as 90d; by default no end.") var validFor: String?
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    var body: [(String, JSONValue)] = [
      ("name", .string(name)), ("scopes", .array(scopes.split(separator: ",").map { .string(String($0)) })),
    ]
    if let validFor { body.append(("valid_seconds", .integer(try seconds(validFor, of: "--valid-for")))) }
    return OperationCall(name: "addOperator", body: body)
  }
}

struct RemoveOperator: AdministrationVerb {
  static let configuration = CommandConfiguration(commandName: "remove", abstract: "Revoke an operator's token.")

  @Argument(help: "The operator's name.") var name: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(name: "removeOperator", key: name)
  }
}

struct ShowPolicy: AdministrationVerb {
  static let configuration = CommandConfiguration(commandName: "show", abstract: "Show the policy.")

  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall { OperationCall(name: "showPolicy") }
}

struct SetPolicy: AdministrationVerb {
  static let configuration = CommandConfiguration(commandName: "set", abstract: "Replace the policy.")

  @Argument(help: "The policy, as policy show --json prints it.", completion: .file()) var file: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    let bytes: [UInt8]
    do throws(FileError) { bytes = try Files.readFile(at: file, limit: 1 << 16) } catch { throw ServiceFailure(error) }
    do throws(JSONMistake) {
      return OperationCall(name: "setPolicy", body: [("policy", try JSONMember(parsing: bytes).value)])
    } catch { throw ServiceFailure(.malformed, error.text(in: file)) }
  }
}

struct ResponseCode: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "arc", abstract: "Show what an attestation response code stands for.")

  @Argument(help: "The code, ten characters.") var code: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(name: "showCode", key: code.uppercased())
  }
}
#endif
