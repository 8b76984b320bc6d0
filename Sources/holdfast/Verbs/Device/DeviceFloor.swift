import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

struct DeviceFloor: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "floor", abstract: "Show the floors, below which a device rejects tokens, or move one by hand.",
    discussion: """
      A device rejects tokens that expired before its clock floor, or whose generation is below their issuer's generation \
      floor. Floors rise by themselves. Only this command can lower them, for example after a device was given a time in \
      the future. The audit log records each move. Lowering the clock floor does not make used tokens usable again. In an \
      image, floors can only rise.
      """,
    examples: [
      "holdfast device floor --dir lock",
      "holdfast device floor --dir lock --clock now",
      "holdfast device floor --dir lock --issuer 0f1e2d3c4b5a6978 --generation 2",
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "Move the clock floor to this time, such as 2026-11-22T18:00:00Z, Unix seconds, or now.")
  var clock: String?

  @Option(help: "The key id of the issuer whose generation floor is moved.")
  var issuer: String?

  @Option(help: "Move the generation floor of --issuer to this number.")
  var generation: UInt64?

  func check() throws(Failure) {
    guard (issuer == nil) == (generation == nil) else {
      throw Failure(.usage, "--issuer and --generation require each other")
    }
    guard clock == nil || issuer == nil else {
      throw Failure(
        .usage, "only one floor can be moved at a time", hint: "run it once for the clock and once for the issuer")
    }
  }

  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure) {
    let now = SystemClock().unixSeconds()
    let time = try clock.map { (text) throws(Failure) in try Self.time(text, now: now) }
    let keyID = try issuer.map { (text) throws(Failure) in try Self.keyID(text) }
    let ledger = try owned.ledger()
    if let time {
      try recording { () throws(LedgerFault) in try ledger.moveClockFloor(to: time, realClock: now) }
    }
    if let keyID, let generation {
      try recording { () throws(LedgerFault) in
        try ledger.moveGenerationFloor(of: keyID, to: generation, realClock: now)
      }
    }
    try show(ledger)
  }

  private static func time(_ text: String, now: UInt64?) throws(Failure) -> UInt64 {
    if text == "now" {
      guard let now else { throw Failure(.fault, "this host has no clock") }
      return now
    }
    return try Timestamp(argument: text, of: "--clock", orElse: "now").unixSeconds
  }

  private static func keyID(_ text: String) throws(Failure) -> KeyID {
    guard let keyID: KeyID = fixedBytes(hexadecimal: text) else {
      throw Failure(
        .usage, "--issuer must be a key id of 16 hexadecimal digits",
        hint: "holdfast device show lists the issuers' key ids")
    }
    return keyID
  }

  private func show(_ ledger: some OwnerLedger) throws(Failure) {
    let summary = try recording { () throws(LedgerFault) in try ledger.summary() }
    let issuers = try recording { () throws(LedgerFault) in try ledger.issuers() }
    if output.json {
      Console.result(
        .object([("clock_floor", .integer(summary.clockFloor)), ("issuers", .array(issuers.map(\.json)))]))
    } else {
      Console.result("clock floor  \(Timestamp(unixSeconds: summary.clockFloor))")
      for issuer in issuers {
        let keyID = hexadecimal(issuer.keyID)
        Console.result("generation   \(issuer.generationFloor) of issuer \(keyID)\(issuer.terms.note)")
      }
    }
  }
}
