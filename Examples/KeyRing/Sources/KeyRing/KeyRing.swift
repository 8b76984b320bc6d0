import Glibc
import HoldfastAuthenticator
import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastProver
import HoldfastTransport
import HoldfastUser

// An app of a person who uses devices. It reads secrets from standard input, a line each.
//
//   KeyRing join ENDPOINT             becomes a user: reads the owner's code, and the new PIN
//   KeyRing list                      prints the users, their devices, and what their records need
//   KeyRing password [USER]           reads the PIN, and prints the next one-time password
//   KeyRing seal COMMAND WORD...      reads the PIN, and prints a seal over the command with these parameters
//   KeyRing answer                    reads a device's request for a seal and shows it; then reads yes, no or reject, and the PIN
//   KeyRing import                    reads the otpauth URI of an account of another service, and a new PIN
//   KeyRing export USER               reads the PIN, and prints the URI of the user's account, with its secret
//   KeyRing check ENDPOINT            has the device prove that it knows the user, before a code is typed into it
//   KeyRing synchronise ENDPOINT      takes over the device's time and counters, without blocking a thread
//   KeyRing unlock ENDPOINT           ends a lockout: reads the owner's code
//   KeyRing change                    reads the old PIN and the new one, and prints the code that undoes the change
//   KeyRing measure FILE              writes the evidence with which this app itself is enrolled

@main
struct KeyRing {
  /// The person, whose secrets are in the folder `keys`.
  static let person = AuthenticatorUser(authenticator: "keys")
  /// This app, which proves itself before it asks a device something. Its enrolments are in the folder `phone`.
  static let app = Prover(state: "phone", keys: .app)

  static func main() async throws {
    let words = Array(CommandLine.arguments.dropFirst())
    switch (words.first, words.count) {
    case ("join", 2): try join(at: Endpoint(parsing: words[1]))
    case ("list", 1): try list()
    case ("password", 1...2): try password(words.dropFirst().first)
    case ("seal", 2...): try seal(words[1], words[2...])
    case ("answer", 1): try answer()
    case ("import", 1): try importAccounts()
    case ("export", 2): try export(words[1])
    case ("check", 2): try check(Endpoint(parsing: words[1]))
    case ("synchronise", 2): try await synchronise(at: Endpoint(parsing: words[1]))
    case ("unlock", 2): try unlock(at: Endpoint(parsing: words[1]))
    case ("change", 1): try change()
    case ("measure", 2): try measure(into: words[1])
    default:
      print("usage: KeyRing join | list | password | seal | answer | import | export")
      print("               | check | synchronise | unlock | change | measure")
    }
  }

  static func join(at lock: Endpoint) throws {
    guard let code = OneUseCode(line().span) else { return print("that is no code, or it was mistyped") }
    let pin = try PIN(line().span)
    do throws(UserExchangeError) {
      let joined = try person.activate(with: code, at: lock, protection: .pin(pin))
      print("joined as \(joined.user)")
    } catch .unknownEnd {
      // The secrets are stored. The lock knows whether it has added the user.
      print("not known: synchronise finds out")
    } catch .authenticator(.weakPIN(let fault)) { print("choose another PIN: \(fault)") }
  }

  static func list() throws {
    let keys = try person.open()
    for user in try keys.users() {
      print("\(user), with \(try keys.devices(of: user).count) devices:")
      for record in try keys.records(user: user) {
        let needs = record.protection.contains(.pin) ? "needs a PIN" : "needs no PIN"
        print("  \(record.index) \(record.purpose), \(needs), \(record.isConfirmed ? "confirmed" : "not confirmed")")
      }
    }
  }

  static func password(_ user: String?) throws {
    let keys = try person.open()
    let record = try keys.record(user: user, purpose: .otp)
    // It is on the disk that this password is used, before it is shown. A wrong PIN makes a wrong one.
    print(try keys.code(for: record, with: .pin(PIN(line().span)), clock: SystemClock()).text)
  }

  static func seal(_ command: String, _ parameters: ArraySlice<String>) throws {
    let keys = try person.open()
    let record = try keys.record(purpose: .seal)
    let request = try SealRequest(
      command: command, parameters: Array(parameters), fieldByteLimit: record.sealFieldByteLimit)
    print(try keys.seal(request, for: record, with: .pin(PIN(line().span)), clock: SystemClock()).text)
  }

  static func answer() throws {
    let keys = try person.open()
    let request: CheckedSealRequest
    do throws(SealRequestFault) { request = try keys.check(line(), clock: SystemClock()) } catch {
      // Nobody is asked about a request that no device of this person made, or that has expired.
      return print("refused: \(error)")
    }
    let command = ([request.sealed.command] + request.sealed.parameters).joined(separator: " ")
    print("\(request.user), the device asks: \(request.text ?? command) (\(command))")
    let (answer, pin) = (line(), line())
    switch String(decoding: answer, as: UTF8.self) {
    case "yes": print(try keys.approve(request, with: .pin(PIN(pin.span)), clock: SystemClock()).text)
    // The device records this code as the person's refusal, and carries nothing out.
    case "reject": print(try keys.reject(request, with: .pin(PIN(pin.span)), clock: SystemClock()).text)
    default: print("nothing was made")
    }
  }

  static func importAccounts() throws {
    let uri = line()
    let pin = try PIN(line().span)
    let keys = try AuthenticatorFolder.create(at: person.authenticator)
    var random = SystemRandom()
    do throws(AuthenticatorFault) {
      for record in try keys.importAccounts(uri.span, protection: .pin(pin), random: &random) {
        print("imported \(record.user)")
      }
    } catch .malformedAccount { print("that is no account") }
  }

  static func export(_ user: String) throws {
    let keys = try person.open()
    let record = try keys.record(user: user, purpose: .otp)
    // Whoever sees the URI can use the account. A wrong PIN exports a wrong secret.
    let uri = try keys.withExportedAccount(of: record, with: .pin(PIN(line().span))) { uri in
      String(decoding: (0..<uri.count).map { uri[$0] }, as: UTF8.self)
    }
    print(uri)
  }

  static func check(_ lock: Endpoint) throws {
    let record = try person.open().record(purpose: .host)
    let challenge = try person.challengeDevice(with: record, as: app, at: lock)
    print(challenge == nil ? "this is not the device" : "this is the device")
  }

  static func synchronise(at lock: Endpoint) async throws {
    let said = try await person.synchronise(as: app, at: lock)
    print("\(said.user): the clock is \(said.clockOffsetSeconds) seconds ahead")
  }

  static func unlock(at lock: Endpoint) throws {
    guard let code = OneUseCode(line().span) else { return print("that is no code, or it was mistyped") }
    try AuthenticatorUser.unlock(with: code, at: lock)
    print("unlocked")
  }

  static func change() throws {
    let record = try person.open().record(purpose: .otp)
    let (old, new) = (line(), line())
    try person.changeProtection(of: record, from: .pin(PIN(old.span)), to: .pin(PIN(new.span))) { undoCode in
      // A mistyped old PIN cannot be noticed: this code undoes the change, until the device has accepted a password.
      print(String(decoding: (0..<undoCode.count).map { undoCode[$0] }, as: UTF8.self))
      return true
    }
  }

  static func measure(into path: String) throws {
    let evidence = try app.begin(replacing: true).evidence
    // Anyone who reads the evidence knows the measurements.
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    guard write(file, evidence, evidence.count) == evidence.count, close(file) == 0 else {
      return print("\(path) cannot be written")
    }
  }

  /// Reads a line. A product asks at a screen, and wipes what it was given.
  static func line() -> [UInt8] { Array((readLine() ?? "").utf8) }
}
