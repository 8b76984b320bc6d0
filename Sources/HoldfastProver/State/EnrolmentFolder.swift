import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastLinux
import HoldfastOnline

/// The folder with the files of one enrolment: `devices/<id>` in a state folder or, in the layout of older versions,
/// the state folder itself.
///
/// Neither IM nor DM can be computed from a copy of it, because it holds no digest of a component.
package struct EnrolmentFolder: Sendable {
  package let path: String

  package static let configurationName = "measurement_config.bin"
  package static let enrolmentName = "enrolment.json"
  package static let fingerprintsName = "fingerprints.cbor"
  package static let rememberedName = "remembered"
  package static let termsName = "terms.jwt"
  /// The version that is written for an enrolment with terms, which an older program must not ignore.
  fileprivate static let termsVersion: UInt64 = 4
  /// The version that is written otherwise. Version 2, without the issuer's report, is read too.
  fileprivate static let currentVersion: UInt64 = 3
  private static let manifestLimit = 16_384

  package func file(_ name: String) -> String { "\(path)/\(name)" }

  package static func tokenName(_ encoding: TokenEncoding) -> String {
    encoding == .jose ? "measurement_token.jose" : "measurement_token.cose"
  }

  /// Reads the enrolment. Files that do not belong together are refused, not repaired.
  ///
  /// Another process may replace the enrolment meanwhile. If the files do not match and `enrolment.json` has changed,
  /// everything is read once more.
  package func load() throws(StateFolderFault) -> Enrolment {
    let manifest = try read(Self.enrolmentName, limit: Self.manifestLimit)
    do throws(StateFolderFault) { return try load(manifest) } catch {
      let now = try read(Self.enrolmentName, limit: Self.manifestLimit)
      guard now != manifest else { throw error }
      return try load(now)
    }
  }

  private func load(_ bytes: [UInt8]) throws(StateFolderFault) -> Enrolment {
    let manifest = try EnrolmentManifest(bytes, at: file(Self.enrolmentName))
    let tokenName = Self.tokenName(manifest.encoding)
    let configuration = try loadConfiguration()
    let token = try read(tokenName, limit: TokenOpener.maximumTokenByteCount)
    guard !token.isEmpty, manifest.tokenDigest == (try hexadecimalDigest(token)) else { throw damaged(tokenName) }
    let fingerprints = try loadFingerprints()
    guard manifest.fingerprintsDigest == (try hexadecimalDigest(fingerprints.encoded())) else {
      throw damaged(Self.fingerprintsName)
    }
    var enrolment = Enrolment(
      descriptor: manifest.descriptor, encoding: manifest.encoding, configuration: configuration, token: token,
      fingerprints: fingerprints, report: manifest.report, terms: try loadTerms(manifest),
      service: manifest.service)
    enrolment.hasOwnConfiguration = manifest.configurationDigest == (try hexadecimalDigest(configuration))
    return enrolment
  }

  /// Reads the terms that `enrolment.json` names, and verifies that its issuer signed them for its token.
  private func loadTerms(_ manifest: EnrolmentManifest) throws(StateFolderFault) -> SignedTerms? {
    guard let expected = manifest.terms else { return nil }
    let bytes = try read(Self.termsName, limit: SignedTerms.maximumByteCount)
    guard expected.digest == (try hexadecimalDigest(bytes)), let terms = try? SignedTerms(verifying: bytes),
      terms.key == expected.key, hexadecimal(terms.terms.tokenDigest) == manifest.tokenDigest
    else { throw damaged(Self.termsName) }
    return terms
  }

  /// Returns the device that `enrolment.json` names.
  package func loadDevice() throws(StateFolderFault) -> DeviceDescriptor {
    try EnrolmentManifest(
      try read(Self.enrolmentName, limit: Self.manifestLimit), at: file(Self.enrolmentName)
    ).descriptor
  }

  /// Returns whether there is an enrolment, intact or damaged: `enrolment.json` is written last.
  package func hasEnrolment() throws(StateFolderFault) -> Bool {
    do throws(StateFolderFault) { _ = try read(Self.enrolmentName, limit: Self.manifestLimit) } catch {
      switch error {
      case .missing: return false
      case .file(let fault) where fault.kind == .noPermission || fault.kind == .wrongOwner: throw error
      default: return true
      }
    }
    return true
  }

  /// Writes the files of an enrolment, `enrolment.json` last.
  ///
  /// - Parameter time: The latest time of an enrolment with terms.
  package func write(_ enrolment: Enrolment, time: LatestTime) throws(StateFolderFault) {
    try write(enrolment.configuration, as: Self.configurationName)
    try write(enrolment.token, as: Self.tokenName(enrolment.encoding))
    try write(enrolment.fingerprints.encoded(), as: Self.fingerprintsName)
    if let terms = enrolment.terms {
      try write(terms.bytes, as: Self.termsName)
      try write(time.encoded(), as: LatestTime.fileName)
    }
    try write(try EnrolmentManifest(of: enrolment).encoded(), as: Self.enrolmentName)
  }

  /// Removes the files of an enrolment that shares its folder with others, `enrolment.json` first.
  package func removeFiles() throws(StateFolderFault) {
    for name in [
      Self.enrolmentName, Self.rememberedName, Self.tokenName(.cose), Self.tokenName(.jose), Self.fingerprintsName,
      Self.configurationName, RequestNumbers.fileName, Self.termsName, LatestTime.fileName, Mail.fileName,
      CarriedPages.fileName,
    ] {
      do throws(FileError) { try Files.removeFile(at: file(name)) } catch {
        guard error.kind == .notFound else { throw .file(error) }
      }
    }
  }
}

extension EnrolmentFolder {
  /// Returns whether the device has already received this whole token, so that a reference suffices.
  package func isRemembered(_ token: [UInt8]) -> Bool {
    guard let bytes = try? read(Self.rememberedName, limit: 128), let digest = try? hexadecimalDigest(token) else {
      return false
    }
    return String(decoding: bytes, as: UTF8.self) == digest + "\n"
  }

  /// Records that the device, which proved itself, accepted this token.
  package func setRemembered(_ token: [UInt8]) throws(StateFolderFault) {
    guard !isRemembered(token) else { return }
    try write(Array("\(try hexadecimalDigest(token))\n".utf8), as: Self.rememberedName)
  }

  package func loadConfiguration() throws(StateFolderFault) -> [UInt8] {
    let configuration = try read(Self.configurationName, limit: 4096)
    do throws(EncodingFault) { _ = try MeasurementConfiguration(decoding: configuration.span) } catch {
      throw damaged(Self.configurationName)
    }
    return configuration
  }

  package func loadFingerprints() throws(StateFolderFault) -> BaselineFingerprints {
    let bytes = try read(Self.fingerprintsName, limit: 8192)
    do throws(EncodingFault) { return try BaselineFingerprints(decoding: bytes.span) } catch {
      throw damaged(Self.fingerprintsName)
    }
  }

  package func write(_ bytes: [UInt8], as name: String) throws(StateFolderFault) {
    do throws(FileError) { try Files.writeFileAtomically(bytes, at: file(name), overwrite: true) } catch {
      throw .file(error)
    }
  }

  package func read(_ name: String, limit: Int) throws(StateFolderFault) -> [UInt8] {
    do throws(FileError) {
      return try Files.readFile(at: file(name), limit: limit, requirements: [.noSymbolicLink, .owned])
    } catch {
      if error.kind == .notFound { throw .missing(path: file(name)) }
      throw .file(error)
    }
  }

  package func damaged(_ name: String) -> StateFolderFault { .damaged(path: file(name)) }
}

/// The content of `enrolment.json`, which names the device and identifies the files that belong together.
package struct EnrolmentManifest {
  package let descriptor: DeviceDescriptor
  package let encoding: TokenEncoding
  package let tokenDigest: String
  package let configurationDigest: String
  package let fingerprintsDigest: String
  package let report: IssuanceReport?
  /// SHA-256 of the terms, and the key of their issuer; nil if there are none.
  package let terms: (digest: String, key: PublicKeyJWK)?
  /// The online service that issued the token; nil if that is not known.
  package let service: ServiceAddress?

  package init(of enrolment: Enrolment) throws(StateFolderFault) {
    descriptor = enrolment.descriptor
    encoding = enrolment.encoding
    tokenDigest = try hexadecimalDigest(enrolment.token)
    configurationDigest = try hexadecimalDigest(enrolment.configuration)
    fingerprintsDigest = try hexadecimalDigest(enrolment.fingerprints.encoded())
    (report, service) = (enrolment.report, enrolment.service)
    terms = try enrolment.terms.map { (terms) throws(StateFolderFault) in
      (try hexadecimalDigest(terms.bytes), terms.key)
    }
  }

  /// Parses the file that was read from `path`.
  package init(_ bytes: [UInt8], at path: String) throws(StateFolderFault) {
    let value: JSONValue
    do throws(JSONFault) { value = try JSONValue(parsing: bytes, byteLimit: bytes.count) } catch {
      throw .damaged(path: path)
    }
    guard let version = value["version"]?.number else { throw .damaged(path: path) }
    guard (2...EnrolmentFolder.termsVersion).contains(version) else { throw .otherVersion(path: path) }
    do throws(KeyFault) { descriptor = try DeviceDescriptor(value["device"] ?? .null) } catch {
      throw .damaged(path: path)
    }
    guard let tokenName = value["token"]?.text,
      let encoding = [TokenEncoding.cose, .jose].first(where: { EnrolmentFolder.tokenName($0) == tokenName }),
      let tokenDigest = value["token_sha256"]?.text, let configurationDigest = value["configuration_sha256"]?.text,
      let fingerprintsDigest = value["fingerprints_sha256"]?.text
    else { throw .damaged(path: path) }
    self.encoding = encoding
    (self.tokenDigest, self.configurationDigest) = (tokenDigest, configurationDigest)
    self.fingerprintsDigest = fingerprintsDigest
    report = value["issued"].flatMap { IssuanceReport($0) }
    service = value["service"]?.text.flatMap { try? ServiceAddress($0) }
    guard (value["service"] == nil) == (service == nil) else { throw .damaged(path: path) }
    terms = version == EnrolmentFolder.termsVersion ? try Self.terms(value, at: path) : nil
    guard report != nil || version != EnrolmentFolder.currentVersion else { throw .damaged(path: path) }
  }

  private static func terms(
    _ value: JSONValue, at path: String
  ) throws(StateFolderFault) -> (digest: String, key: PublicKeyJWK) {
    guard let digest = value["terms_sha256"]?.text, let key = try? PublicKeyJWK(value["issuer_key"] ?? .null) else {
      throw .damaged(path: path)
    }
    return (digest, key)
  }

  private var version: UInt64 {
    if terms != nil { return EnrolmentFolder.termsVersion }
    return report == nil ? 2 : EnrolmentFolder.currentVersion
  }

  package func encoded() -> [UInt8] {
    JSONValue.object(
      [
        ("version", .integer(version)), ("device", descriptor.json),
        ("token", .string(EnrolmentFolder.tokenName(encoding))), ("token_sha256", .string(tokenDigest)),
        ("configuration_sha256", .string(configurationDigest)), ("fingerprints_sha256", .string(fingerprintsDigest)),
      ] + (report.map { [("issued", $0.json)] } ?? [])
        + (service.map { [("service", .string($0.description))] } ?? [])
        + (terms.map { [("terms_sha256", .string($0.digest)), ("issuer_key", $0.key.json)] } ?? [])
    ).pretty()
  }
}

/// Returns SHA-256 in hexadecimal digits.
private func hexadecimalDigest(_ bytes: [UInt8]) throws(StateFolderFault) -> String {
  var cryptography = OpenSSLCryptography()
  var hash = cryptography.sha256()
  hash.append(bytes.span)
  do throws(CryptographyFailure) { return hexadecimal(try hash.finish() as Digest) } catch { throw .cryptography }
}
