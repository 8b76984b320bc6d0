import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

/// A backend that takes an app's evidence and issues a measurement token, with stores and a key of your own.
///
/// Any number of threads may use it at once. It keeps nothing itself: several processes may share a store.
public struct Issuer<Store: IssuerStore, Key: SigningKey & Sendable>: Sendable {
  /// The memory of the issuer.
  public let store: Store
  /// The properties with which no app is approved.
  public var refusedProperties = defaultRefusedProperties
  /// The ways of measuring that baselines may permit.
  public var measurementPolicy = defaultMeasurementPolicy
  private let tokens: TokenIssuer<Key>

  /// Creates an issuer.
  ///
  /// - Parameters:
  ///   - name: The claim `iss` of its tokens, 1 to 64 bytes; informative.
  ///   - key: The key that signs tokens and nothing else. The issuer makes a copy for each token, so that a class or a handle
  ///     must be safe to use from several threads.
  ///   - store: The memory of the issuer.
  public init(name: BoundedText<64>, key: Key, store: Store) {
    self.store = store
    tokens = TokenIssuer(name: name, key: key)
  }

  /// The public key that devices must trust, as a JWK in JSON: a file with it is what `holdfast device trust` takes.
  public var publicKeyJSON: String { tokens.publicKeyJSON }

  /// Appraises evidence and issues a measurement token for one device, with the system's clock and random source.
  ///
  /// - Parameters:
  ///   - evidence: The evidence that the prover made, at most 65,536 bytes. The measurements can be computed from it, so it must
  ///     come over a confidential connection, and must not be stored.
  ///   - device: The device that the prover asks for.
  ///   - options: The properties of the token.
  /// - Returns: The token, which only the device can read.
  /// - Throws: ``IssuerError``. Then no token was issued.
  public func issue(
    evidence: [UInt8], for device: DeviceDescriptor, options: IssuanceOptions = IssuanceOptions()
  ) throws(IssuerError<Store.Failure>) -> IssuedToken {
    var random = SystemRandom()
    return try issue(evidence: evidence, for: device, options: options, clock: SystemClock(), random: &random)
  }

  /// The same with a clock and a random source of your own.
  ///
  /// The record of the token is written before the token is made. After a crash between the two, the prover must take a new
  /// baseline.
  public func issue(
    evidence: [UInt8], for device: DeviceDescriptor, options: IssuanceOptions = IssuanceOptions(),
    clock: borrowing some Clock & ~Copyable, random: inout some RandomSource & ~Copyable
  ) throws(IssuerError<Store.Failure>) -> IssuedToken {
    guard let now = clock.unixSeconds() else { throw .noClock }
    let app = try appraise(evidence, now: now)
    let (standing, generation) = try asking { () throws(Store.Failure) in
      (try store.standing(of: device.deviceID), try store.generation(of: device.deviceID))
    }
    if let refusal = IssuerRefusal(standing, of: device) { throw .refused(refusal) }
    let claims: MeasurementClaims
    do throws(TokenWritingFault) {
      claims = try MeasurementClaims.forToken(
        of: app, from: tokens.name, for: device.deviceID, options: options, generation: generation, now: now,
        random: &random)
    } catch { throw .token(TokenError(error)) }
    let record = IssuanceRecord(claims, baseline: app.baseline)
    guard try asking({ () throws(Store.Failure) in try store.insert(record) }) else { throw .refused(.app(.repeated)) }
    do throws(TokenError) { return try tokens.write(claims, to: device, options: options, random: &random) } catch {
      throw .token(error)
    }
  }

  private func appraise(_ evidence: [UInt8], now: UInt64) throws(IssuerError<Store.Failure>) -> AppraisedApp {
    let submitted: SubmittedEvidence
    do throws(AppraisalError) { submitted = try SubmittedEvidence(evidence) } catch { throw IssuerError(error) }
    guard let image = submitted.image else { throw .refused(.app(.incomplete)) }
    switch try asking({ () throws(Store.Failure) in try store.approval(of: image) }) {
    case .none: throw .refused(.app(.unknownImage))
    case .some(let approval):
      do throws(AppraisalError) {
        return try submitted.appraised(
          as: approval, refusing: refusedProperties, permitting: measurementPolicy, now: now)
      } catch { throw IssuerError(error) }
    }
  }

  /// Asks the store.
  private func asking<Answer: ~Copyable>(
    _ question: () throws(Store.Failure) -> Answer
  ) throws(IssuerError<Store.Failure>) -> Answer {
    do throws(Store.Failure) { return try question() } catch { throw .store(error) }
  }
}

/// The reasons why an issuer issued nothing.
public enum IssuerError<StoreFailure: Error>: Error {
  /// The bytes are not evidence.
  case malformed
  /// The app or the device gets no token.
  case refused(IssuerRefusal)
  /// There is no clock.
  case noClock
  /// The store failed. It may have recorded the token, which was then not made.
  case store(StoreFailure)
  /// The token could not be made.
  case token(TokenError)
  /// The cryptographic library failed.
  case cryptography

  init(_ error: AppraisalError) {
    switch error {
    case .malformed: self = .malformed
    case .refused(let reason): self = .refused(.app(reason))
    case .cryptography: self = .cryptography
    }
  }
}

extension IssuerError: Equatable where StoreFailure: Equatable {}

/// The reasons why an issuer refuses a token. The first that applies is reported.
public enum IssuerRefusal: Sendable, Equatable {
  /// The app is not approved, or its baseline was used before.
  case app(AttestationRefusal)
  /// The device is not registered.
  case unknownDevice
  /// The owner wants no more tokens for the device.
  case blockedDevice
  /// The device is registered with another key.
  case anotherKey

  /// The reason why a device with this standing gets no token; nil if it gets one.
  init?(_ standing: DeviceStanding, of device: DeviceDescriptor) {
    switch standing {
    case .unknown: self = .unknownDevice
    case .blocked: self = .blockedDevice
    case .registered(let point):
      guard point != device.publicPoint else { return nil }
      self = .anotherKey
    }
  }
}
