import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// A maker's list of the executables of a release, whose signature was checked.
///
/// The text is strict JSON, `{"maker": "…", "app": "…", "images": {"<64 hex digits>": [1, 2, 3]}}`, with the version of each
/// executable. An executable whose tree digest counts, too, has `{"version": [1, 2, 3], "tree_digest": "<64 hex digits>"}` in place of
/// the numbers. The signature is in a file of its own (``MakerSignature``).
package struct ReleaseManifest: Sendable, Equatable {
  /// The name of the maker.
  package let maker: BoundedText<64>
  /// The id of the maker's key.
  package let key: KeyID
  /// The name of the app.
  package let app: BoundedText<64>
  /// The versions of the executables by their digests.
  package let versions: [Digest: AppVersion]
  /// The tree digests of the executables that have one here, by their digests.
  package let trees: [Digest: Digest]

  /// The largest text, in bytes.
  package static let maximumByteCount = 65_536
  /// The largest number of executables.
  package static let maximumCount = 512

  /// The reasons why a manifest does not count.
  package enum Fault: Error, Equatable {
    /// The text has a mistake.
    case mistake(JSONMistake)
    /// The maker's key is no public key of P-256 in PEM.
    case key
    /// The signature is not one of this key over these bytes.
    case signature
  }

  /// Checks the signature, and then reads the text.
  ///
  /// - Parameters:
  ///   - text: The manifest, exactly as it was signed.
  ///   - signature: The signature in DER, at most 72 bytes.
  ///   - maker: The maker's public key, a SubjectPublicKeyInfo in PEM.
  package init(_ text: [UInt8], signature: [UInt8], maker: [UInt8]) throws(Fault) {
    let point: P256Point
    do throws(KeyFault) {
      guard let known = try SubjectPublicKeyInfo.publicKey(maker) else { throw KeyFault.unexpected }
      point = known.point
    } catch { throw .key }
    guard text.count <= Self.maximumByteCount, MakerSignature.signer(of: text, signature, among: [point]) != nil else {
      throw .signature
    }
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) { key = try keyID(of: point, using: &cryptography) } catch { throw .signature }
    do throws(JSONMistake) {
      let value: JSONValue
      do throws(JSONFault) { value = try JSONValue(parsing: text, byteLimit: Self.maximumByteCount) } catch {
        throw JSONMistake(in: text, byteLimit: Self.maximumByteCount) ?? JSONMistake(at: [], expected: .syntax)
      }
      let json = JSONMember(value)
      try json.checkMembers(["maker", "app", "images"])
      self.maker = try Self.name(json, "maker")
      app = try Self.name(json, "app")
      var versions: [Digest: AppVersion] = [:]
      var trees: [Digest: Digest] = [:]
      for (name, member) in try json.required("images").members(atMost: Self.maximumCount) {
        guard let digest: Digest = fixedBytes(hexadecimal: name) else {
          throw member.mistake(.hexadecimal(digitCount: 64))
        }
        var version = member
        if case .object = member.value {
          try member.checkMembers(["version", "tree_digest"])
          version = try member.required("version")
          trees[digest] = try Self.digest(member, "tree_digest")
        }
        var numbers: [UInt64] = []
        for number in try version.elements(count: 3) { numbers.append(try number.integer()) }
        versions[digest] = AppVersion(major: numbers[0], minor: numbers[1], patch: numbers[2])
      }
      self.versions = versions
      self.trees = trees
    } catch { throw .mistake(error) }
  }

  private static func digest(_ json: JSONMember, _ name: String) throws(JSONMistake) -> Digest {
    let member = try json.required(name)
    guard let digest: Digest = fixedBytes(hexadecimal: try member.text(byteCounts: 64...64)) else {
      throw member.mistake(.hexadecimal(digitCount: 64))
    }
    return digest
  }

  private static func name(_ json: JSONMember, _ name: String) throws(JSONMistake) -> BoundedText<64> {
    let member = try json.required(name)
    let text = try member.text(byteCounts: 1...64)
    guard let bounded = BoundedText<64>(text), !Schema.hasControlCharacters(text) else {
      throw member.mistake(.byteCount(1...64))
    }
    return bounded
  }
}
