import HoldfastCore
import HoldfastJSON
import HoldfastKeys
import HoldfastOpenSSL
import HoldfastStorage
import HoldfastText

/// The prover's state folder (DESIGN §7): what `enroll` leaves and `prove` needs.
///
/// From a copy of it neither IM nor DM can be computed: it holds no digest of a component.
struct ProverFolder {
  let path: String

  static let configurationName = "measurement_config.bin"
  private static let enrolmentName = "enrolment.json"
  private static let fingerprintsName = "fingerprints.cbor"
  private static let rememberedName = "remembered"
  private static let version: UInt64 = 2

  func file(_ name: String) -> String { "\(path)/\(name)" }

  static func tokenName(_ encoding: TokenEncoding) -> String {
    encoding == .jose ? "measurement_token.jose" : "measurement_token.cose"
  }

  /// Makes the folder, 0700, if it is not there.
  func create() throws(Failure) {
    do throws(FileError) { _ = try Files.createPrivateDirectory(at: path) } catch { throw Failure(making: error) }
  }

  func write(_ bytes: [UInt8], as name: String) throws(Failure) {
    do throws(FileError) { try Files.writeFileAtomically(bytes, at: file(name), overwrite: true) } catch {
      throw Failure(error)
    }
  }

  private func read(_ name: String, limit: Int) throws(Failure) -> [UInt8] {
    do throws(FileError) {
      return try Files.readFile(at: file(name), limit: limit, requirements: [.noSymbolicLink, .owned])
    } catch {
      throw Failure(
        error, hint: error.kind == .notFound ? "enrol first: holdfast enroll --state \(path.shellWord) …" : Self.hint)
    }
  }

  private static let hint = "the state folder is damaged: enrol again"
}

/// What a prover knows of one enrolment.
struct Enrolment {
  let descriptor: DeviceDescriptor
  let encoding: TokenEncoding
  let configuration: [UInt8]
  let token: [UInt8]
  let fingerprints: BaselineFingerprints
  /// Whether this is the configuration that the enrolment was made with. The device denies another one; this tells why.
  var hasOwnConfiguration = true
}

extension ProverFolder {
  /// Begins an enrolment with what was measured; what was there before no longer counts.
  func begin(configuration: [UInt8], fingerprints: BaselineFingerprints) throws(Failure) {
    try remove(Self.enrolmentName)
    try write(configuration, as: Self.configurationName)
    try write(fingerprints.encoded(), as: Self.fingerprintsName)
  }

  /// Reads what ``begin(configuration:fingerprints:)`` left.
  func loadBegun() throws(Failure) -> (configuration: [UInt8], fingerprints: BaselineFingerprints) {
    (try loadConfiguration(hint: "measure again: holdfast measure"), try loadFingerprints())
  }

  /// Writes an enrolment; `enrolment.json`, which holds it together, goes first and comes last.
  func store(_ enrolment: Enrolment) throws(Failure) {
    try remove(Self.enrolmentName)
    try forgetRemembered()
    try write(enrolment.configuration, as: Self.configurationName)
    try write(enrolment.token, as: Self.tokenName(enrolment.encoding))
    try write(enrolment.fingerprints.encoded(), as: Self.fingerprintsName)
    let other: TokenEncoding = enrolment.encoding == .jose ? .cose : .jose
    try remove(Self.tokenName(other))
    try write(try manifest(enrolment), as: Self.enrolmentName)
  }

  private func manifest(_ enrolment: Enrolment) throws(Failure) -> [UInt8] {
    JSONValue.object([
      ("version", .integer(Self.version)),
      ("device", enrolment.descriptor.json),
      ("token", .string(Self.tokenName(enrolment.encoding))),
      ("token_sha256", .string(try digest(enrolment.token))),
      ("configuration_sha256", .string(try digest(enrolment.configuration))),
      ("fingerprints_sha256", .string(try digest(enrolment.fingerprints.encoded()))),
    ]).pretty()
  }

  /// Reads an enrolment. Files that do not belong together are refused, not repaired.
  func load() throws(Failure) -> Enrolment {
    let bytes = try read(Self.enrolmentName, limit: 8192)
    let manifest: JSONValue
    let descriptor: DeviceDescriptor
    do {
      manifest = try JSONValue(parsing: bytes, byteLimit: 8192)
      descriptor = try DeviceDescriptor(manifest["device"] ?? .null)
    } catch { throw damaged(Self.enrolmentName) }
    guard manifest["version"]?.number == Self.version else {
      throw Failure(.malformed, "\(file(Self.enrolmentName)) was written by another version", hint: "enrol again")
    }
    guard let tokenName = manifest["token"]?.text,
      let encoding = [TokenEncoding.cose, .jose].first(where: { Self.tokenName($0) == tokenName })
    else { throw damaged(Self.enrolmentName) }
    let configuration = try loadConfiguration()
    let token = try read(tokenName, limit: TokenOpener.maximumTokenByteCount)
    guard !token.isEmpty, manifest["token_sha256"]?.text == (try digest(token)) else { throw damaged(tokenName) }
    let fingerprints = try loadFingerprints()
    guard manifest["fingerprints_sha256"]?.text == (try digest(fingerprints.encoded())) else {
      throw damaged(Self.fingerprintsName)
    }
    return Enrolment(
      descriptor: descriptor, encoding: encoding, configuration: configuration, token: token,
      fingerprints: fingerprints,
      hasOwnConfiguration: manifest["configuration_sha256"]?.text == (try digest(configuration)))
  }

  private func loadConfiguration(hint: String = "enrol again") throws(Failure) -> [UInt8] {
    let configuration = try read(Self.configurationName, limit: 4096)
    do throws(EncodingFault) { _ = try MeasurementConfiguration(decoding: configuration.span) } catch {
      throw damaged(Self.configurationName, hint: hint)
    }
    return configuration
  }

  private func loadFingerprints() throws(Failure) -> BaselineFingerprints {
    let bytes = try read(Self.fingerprintsName, limit: 8192)
    do throws(EncodingFault) { return try BaselineFingerprints(decoding: bytes.span) } catch {
      throw damaged(Self.fingerprintsName)
    }
  }

  /// Whether the device took this token whole before, so that a reference may do.
  func isRemembered(_ token: [UInt8]) -> Bool {
    guard let bytes = try? read(Self.rememberedName, limit: 128), let digest = try? digest(token) else { return false }
    return String(decoding: bytes, as: UTF8.self) == digest + "\n"
  }

  /// Notes that the device, which proved itself, took this token.
  func setRemembered(_ token: [UInt8]) throws(Failure) {
    guard !isRemembered(token) else { return }
    try write(Array("\(try digest(token))\n".utf8), as: Self.rememberedName)
  }

  private func forgetRemembered() throws(Failure) { try remove(Self.rememberedName) }

  private func remove(_ name: String) throws(Failure) {
    do throws(FileError) { try Files.removeFile(at: file(name)) } catch {
      guard error.kind != .notFound else { return }
      throw Failure(error)
    }
  }

  private func digest(_ bytes: [UInt8]) throws(Failure) -> String {
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append(bytes.span)
    do throws(CryptographyFailure) { return hexadecimal(try hash.finish()) } catch {
      throw Failure(.fault, "the cryptographic library failed")
    }
  }

  func damaged(_ name: String, hint: String = "enrol again") -> Failure {
    Failure(.malformed, "\(file(name)) is damaged or of another enrolment", hint: hint)
  }
}
