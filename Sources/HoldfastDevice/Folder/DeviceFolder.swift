import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage

/// The public description of a device: its id and public key.
public typealias DeviceDescriptor = HoldfastFormats.DeviceDescriptor
/// The reasons why a key or a description of a device is refused.
public typealias KeyFault = HoldfastFormats.KeyFault

/// A folder that holds one device: key, ledger, policy and the simulated lock. It has mode 0700, its files 0600.
public struct DeviceFolder: Sendable {
  /// The path of the folder.
  public let path: String
  /// The public facts about the device: its id and public key.
  public let descriptor: DeviceDescriptor
  /// The groups of devices that the device belongs to, at most 8. Bulletins for a group are for each of its devices.
  public internal(set) var groups: [BoundedText<32>] = []
  /// Whether the private key is in the folder.
  package let hasKey: Bool
  /// The place of the counter that anchors the device's ledger; nil if the ledger is not anchored.
  package let counter: CounterPlace?
  /// The place of the private key in a TPM; nil if the key is a file, or elsewhere.
  package private(set) var tpmKey: TPMKeyPlace?
  let operations: CounterOperations

  package init(
    path: String, descriptor: DeviceDescriptor, hasKey: Bool = true, counter: CounterPlace?,
    tpmKey: TPMKeyPlace? = nil, operations: CounterOperations
  ) {
    (self.path, self.descriptor, self.hasKey) = (path, descriptor, hasKey)
    (self.counter, self.tpmKey, self.operations) = (counter, tpmKey, operations)
  }

  /// Opens a folder and checks its description and key.
  ///
  /// - Throws: `missing`; `folder` with the fault of the folder, also for one of another kind; `halfMade`, `incomplete`; or `file`
  ///   with the file and its fault, `newerVersion` or `olderVersion` for a folder of another version.
  public static func open(at path: String) throws(DeviceFolderFault) -> DeviceFolder {
    try open(at: path, operations: .tpm)
  }

  package static func open(at path: String, operations: CounterOperations) throws(DeviceFolderFault) -> DeviceFolder {
    try checkFolder(path)
    try requireWholeDevice(path)
    guard try DeviceFile.description.isPresent(in: path) else {
      for file in DeviceFile.allCases where try file.isPresent(in: path) { throw .incomplete }
      throw .missing
    }
    let description = try readDescription(path)
    let (descriptor, hasKey) = (description.descriptor, description.hasKey)
    var folder = DeviceFolder(
      path: path, descriptor: descriptor, hasKey: hasKey, counter: description.counter, operations: operations)
    folder.groups = description.groups
    guard hasKey else { return folder }
    let secrets = try folder.secrets()
    folder.tpmKey = secrets.tpmKey
    guard secrets.publicPoint == folder.descriptor.publicKey.point else { throw .file(.key, .otherDevice) }
    return folder
  }

  /// Checks that the folder holds a device, and that its making was completed.
  ///
  /// - Throws: `folder` for a folder of another kind, `halfMade`.
  static func requireWholeDevice(_ path: String) throws(DeviceFolderFault) {
    do throws(FileError) { try FolderKind.device.require(ofFolder: path) } catch {
      throw .folder(error)
    }
    if try isHalfMade(path) { throw .halfMade }
  }

  /// Opens the ledger. If a counter anchors it, it must be the newest one.
  ///
  /// - Throws: `file` for a fault of the ledger or the description, `counter` for one of the counter.
  package func openLedger(limits: LedgerLimits = LedgerLimits()) throws(DeviceFolderFault) -> Ledger {
    let ledger: Ledger
    let anchor = try openAnchor()
    do throws(LedgerError) {
      ledger = try Ledger(
        path: DeviceFile.ledger.path(in: path), limits: limits, anchor: anchor, groups: try groupAudiences())
    } catch { throw DeviceFolderFault(error) }
    guard ledger.deviceID == descriptor.deviceID else { throw .file(.ledger, .otherDevice) }
    guard (ledger.tpm == nil) == (counter == nil) else { throw .file(.description, .otherDevice) }
    return ledger
  }

  private func groupAudiences() throws(LedgerError) -> [AudienceID] {
    var cryptography = OpenSSLCryptography()
    var audiences: [AudienceID] = []
    do throws(CryptographyFailure) {
      for group in groups { audiences.append(try audience(ofGroup: group, using: &cryptography)) }
    } catch { throw .database(.misuse) }
    return audiences
  }

  private func openAnchor() throws(DeviceFolderFault) -> LedgerAnchor? {
    guard let counter else { return nil }
    let secrets = try secrets()
    let rollbackCounter = try secrets.counter(at: counter, operations)
    do throws(FileError) {
      return LedgerAnchor(of: descriptor.deviceID, rollbackCounter, turns: try FolderTurns(directory: path))
    } catch { throw .folder(error) }
  }

  /// Returns the policy file, which may be invalid: `policy.jws` if the owner named a policy key, or else `policy.json`.
  ///
  /// - Parameters:
  ///   - ledger: the ledger of the device, which has the key.
  ///   - isRecording: whether a newer signed policy is recorded as the newest one before it counts.
  /// - Throws: `file` if the ledger cannot be read.
  package func policy(of ledger: Ledger, isRecording: Bool = false) throws(DeviceFolderFault) -> PolicyFile {
    let trust: PolicyTrust?
    do throws(DatabaseError) {
      trust = try ledger.read { (tables) throws(DatabaseError) in try tables.policyTrust() }
    } catch { throw .file(.ledger, .database(error)) }
    let signer = trust.map { PolicySigner(ledger: ledger, key: $0.key, isRecording: isRecording) }
    return PolicyFile(in: path, signer: signer)
  }

  /// Names the key that must sign the device's policies from now on, or takes it back. The device must not be open elsewhere.
  ///
  /// - Returns: whether anything changed.
  /// - Throws: `folder` with `locked` while the device is served; `file` and `counter` for a fault of the ledger.
  @discardableResult
  package func setPolicyKey(_ key: P256Point?, realClock: UInt64?) throws(DeviceFolderFault) -> Bool {
    let serving = try Self.takeLock(of: path)
    _ = serving
    let ledger = try openLedger()
    do throws(LedgerError) { return try ledger.setPolicyKey(key, realClock: realClock) } catch {
      throw DeviceFolderFault(error)
    }
  }

  /// Puts a signed policy in force, also while the device is served. It is recorded as the newest one.
  ///
  /// - Returns: the policy.
  /// - Throws: the fault of the policy; `unwritable`, `unrecorded`.
  @discardableResult
  package func install(signedPolicy text: [UInt8], in ledger: Ledger) throws(PolicyFault) -> SignedPolicy {
    let trust: PolicyTrust?
    do throws(LedgerFault) { trust = try ledger.policyTrust() } catch { throw .unrecorded }
    guard let trust else { throw .anotherKey }
    let policy = try SignedPolicy(text, by: trust.key, for: descriptor.deviceID)
    try ledger.take(policy) {
      do throws(FileError) {
        try Files.writeFileAtomically(text, at: DeviceFile.signedPolicy.path(in: path), overwrite: true)
        return nil
      } catch { return .unwritable(error) }
    }
    return policy
  }

  /// Replaces the policy file atomically. A device with a policy key ignores it, and takes only signed policies.
  ///
  /// - Throws: `file` if it cannot be written, also on a full or read-only disk. The file is then the old one or the new one, whole.
  public func write(_ policy: DevicePolicy) throws(DeviceFolderFault) {
    do throws(FileError) {
      try Files.writeFileAtomically(policy.json(), at: DeviceFile.policy.path(in: path), overwrite: true)
    } catch { throw .file(.policy, .file(error)) }
  }

  /// Trusts an issuer from the next round on, also while the device is served.
  ///
  /// - Parameter publicPoint: the key that verifies the issuer's signatures (ES256), an uncompressed point of 65 bytes.
  /// - Returns: false if the issuer was trusted already.
  /// - Throws: a ``DeviceFolderFault``, or a ``LedgerFault``, such as ``LedgerFault/tooManyIssuers``. On a read-only file system,
  ///   one of the two says so.
  @discardableResult
  public func trust(issuer publicPoint: P256Point) throws -> Bool {
    try openLedger().trust(.signing(publicPoint), realClock: SystemClock().unixSeconds())
  }

  /// Trusts an issuer in the same way.
  ///
  /// - Parameter json: the issuer's public key as a JWK (RFC 7517), as an issuer gives it.
  /// - Returns: false if the issuer was trusted already.
  /// - Throws: ``KeyFault``, and the errors of ``trust(issuer:)-(P256Point)``.
  @discardableResult
  public func trust(issuer json: [UInt8]) throws -> Bool {
    try trust(issuer: PublicKeyJWK(json: json).point)
  }

  /// Opens the simulated lock at its recorded state.
  ///
  /// - Throws: `file` if the state cannot be read.
  public func openLock() throws(DeviceFolderFault) -> SimulatedLock {
    do throws(DeviceFileFault) {
      return try SimulatedLock(lockStateFile)
    } catch { throw .file(.actuator, error) }
  }

  var lockStateFile: LockStateFile {
    LockStateFile(path: DeviceFile.actuator.path(in: path), deviceID: descriptor.deviceID)
  }

  /// Reads the private key, or its place in a TPM, and derives the secrets that follow from it.
  ///
  /// - Throws: `file` if the key cannot be read or is not a private key, or if the TPM holds another key at the place; `key` for
  ///   a fault of the TPM.
  package func secrets() throws(DeviceFolderFault) -> DeviceSecrets {
    switch try Self.readKeyFile(path) {
    case .scalar(let scalar):
      do throws(CryptographyFailure) { return try DeviceSecrets(scalar: scalar) } catch {
        throw .file(.key, .corrupt)
      }
    case .tpm(let record):
      let check = record.check
      return try DeviceSecrets(record.key(operations.keys), descriptor.publicKey.point, check: check)
    case .corrupt: throw .file(.key, .corrupt)
    }
  }

  /// Reads the file `device.key`.
  static func readKeyFile(_ path: String) throws(DeviceFolderFault) -> KeyFileContents {
    do throws(FileError) {
      return try Files.readSecretFile(
        at: DeviceFile.key.path(in: path), limit: TPMKeyRecord.maximumByteCount,
        requirements: [.secret, .noSymbolicLink]
      ) { text in
        do throws(KeyFault) {
          if TPMKeyRecord.isOne(text) { return .tpm(try TPMKeyRecord(text)) }
          return .scalar(try DeviceKeyFile.decode(text))
        } catch { return .corrupt }
      }
    } catch { throw .file(.key, .file(error)) }
  }
}

/// The contents of `device.key`.
enum KeyFileContents: ~Copyable {
  case scalar(Secret<32>)
  case tpm(TPMKeyRecord)
  case corrupt
}

extension TPMKeyRecord {
  consuming func key(_ operations: TPMKeyOperations) -> TPMKey {
    TPMKey(place, authorization: authorization, operations: operations)
  }
}

extension DeviceFolder {
  static let version: UInt64 = 2

  static func readDescription(_ path: String) throws(DeviceFolderFault) -> DeviceDescription {
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try Files.readFile(
        at: DeviceFile.description.path(in: path), limit: PublicKeyJWK.maximumByteCount,
        requirements: [.secret, .noSymbolicLink])
    } catch { throw .file(.description, .file(error)) }
    let value: JSONValue
    do throws(JSONFault) {
      value = try JSONValue(parsing: bytes, byteLimit: PublicKeyJWK.maximumByteCount)
    } catch { throw .file(.description, .corrupt) }
    guard let version = value["version"]?.number else { throw .file(.description, .corrupt) }
    guard version <= Self.version else { throw .file(.description, .newerVersion) }
    guard version == Self.version else { throw .file(.description, .olderVersion) }
    let descriptor: DeviceDescriptor
    do throws(KeyFault) { descriptor = try DeviceDescriptor(value) } catch { throw .file(.description, .corrupt) }
    let key = value["key"]
    guard key == nil || key?.text == "elsewhere", let groups = groups(value["groups"]) else {
      throw .file(.description, .corrupt)
    }
    var description = DeviceDescription(descriptor: descriptor, hasKey: key == nil, groups: groups)
    guard let member = value["counter"] else { return description }
    guard key == nil, let counter = CounterPlace(member, deviceID: descriptor.deviceID) else {
      throw .file(.description, .corrupt)
    }
    description.counter = counter
    return description
  }

  /// Reads the names of groups; nil if they are not such names, or if one occurs twice.
  private static func groups(_ value: JSONValue?) -> [BoundedText<32>]? {
    guard let value else { return [] }
    guard let elements = value.elements, elements.count <= BulletinList.groupLimit else { return nil }
    let groups = elements.compactMap(\.text).compactMap { BoundedText<32>($0) }.filter { !$0.isEmpty }
    return Set(groups).count == elements.count ? groups : nil
  }

  /// Checks that the folder belongs to this user, gives others no access, and is not a symbolic link.
  static func checkFolder(_ path: String) throws(DeviceFolderFault) {
    do throws(FileError) { try Files.requirePrivateFolder(at: path) } catch { throw .folder(error) }
  }
}

/// The contents of `device.json`.
struct DeviceDescription {
  let descriptor: DeviceDescriptor
  let hasKey: Bool
  let groups: [BoundedText<32>]
  var counter: CounterPlace?
}

extension DeviceFile {
  /// Returns whether anything with the file's name exists in the folder.
  func isPresent(in folder: String) throws(DeviceFolderFault) -> Bool {
    var status = stat()
    if unsafe lstat(path(in: folder), &status) == 0 { return true }
    guard errno == ENOENT else { throw .folder(FileError(SystemError.last, at: path(in: folder))) }
    return false
  }
}

/// A file of a device's folder.
public enum DeviceFile: String, Sendable, CaseIterable {
  /// The device's id and public key, and the version of the folder. It is written last, so a folder without it is incomplete.
  case description = "device.json"
  /// The device's private key, as a JWK, or its place in a TPM.
  case key = "device.key"
  /// The policy of the device's owner.
  case policy = "policy.json"
  /// The signed policy, of a device whose owner named a policy key.
  case signedPolicy = "policy.jws"
  /// The ledger, an SQLite database: the facts that the device must never lose.
  case ledger = "ledger.sqlite"
  /// The state of the simulated lock.
  case actuator = "actuator.state"

  /// Returns the file's path in the folder at `folder`.
  package func path(in folder: String) -> String {
    folder + "/" + rawValue
  }
}

/// The fault of a file of the folder.
public enum DeviceFileFault: Error, Equatable {
  /// The file could not be read or written.
  case file(FileError)
  /// The file is a database that could not be read or written.
  case database(DatabaseError)
  /// The file does not have the contents that Holdfast writes.
  case corrupt
  /// The file belongs to another device.
  case otherDevice
  /// A later version of the program wrote the file.
  case newerVersion
  /// A version wrote the file whose format this version no longer reads.
  case olderVersion
  /// The file is an older copy, according to the counter that anchors it.
  case rolledBack
}

/// The reason that a device's folder could not be made or opened.
public enum DeviceFolderFault: Error, Equatable {
  /// The folder holds no device.
  case missing
  /// The folder, or a file in it other than those of ``DeviceFile``, could not be used: `locked` if another process serves or
  /// makes the device, `anotherKind` if the folder holds something else.
  case folder(FileError)
  /// The folder to be made holds a device already.
  case alreadyMade
  /// The folder's description is missing: a reset was interrupted, or the file was removed.
  case incomplete
  /// The making of the folder was interrupted. It must be made again.
  case halfMade
  /// A file of the folder has a fault.
  case file(DeviceFile, DeviceFileFault)
  /// The counter that anchors the device could not be used.
  case counter(CounterFault)
  /// The device's key in a TPM could not be made or used.
  case key(CounterFault)
  /// The path of the TPM is not absolute, or has more than 107 bytes.
  case badTPMPath
  /// The random source, the clock or the cryptographic library failed.
  case failed
}
