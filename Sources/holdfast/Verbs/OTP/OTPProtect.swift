import ArgumentParser
import HoldfastAuthenticator
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastUser

struct OTPProtect: Verb {
  static let configuration = CommandConfiguration(
    commandName: "protect",
    abstract: "Change the PIN, key or host that a user's records need, without the device.",
    discussion: """
      A mistyped old PIN or a wrong key cannot be recognised, and it would destroy the secret. Therefore the command first \
      shows an undo code, which restores the old state until a code is accepted or until --confirm. An additional key and \
      the binding to a host come and go without the PIN. With --connect, the device first checks the present PIN or key, \
      with a command that needs a one-time password.
      """,
    examples: [
      "holdfast otp protect --authenticator keys",
      "holdfast otp protect --authenticator keys --add-key-file key --bind-host",
      "holdfast otp protect --authenticator keys --remove-keys --key-file key",
      """
      holdfast otp protect --authenticator keys --connect unix:/run/lock.sock \\
      --state phone --check-command configure
      """,
      """
      holdfast otp protect --authenticator keys --add-key-file key \\
      --connect unix:/run/lock.sock --state phone --check-command configure
      """,
      "holdfast otp protect --authenticator keys --undo",
      "holdfast otp protect --authenticator keys --confirm",
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var record: RecordOptions
  @OptionGroup var unlocking: UnlockingOptions
  @OptionGroup var new: NewProtectionOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The endpoint of the device that first checks the present PIN or key.")
  var connect: String?

  @OptionGroup var check: PINCheckOptions
  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var pairing: PairingOptions

  @Flag(help: "Take off the key that is needed in addition to the PIN, which --key-file or --key-fd gives.")
  var removeKeys = false

  @Flag(help: "Take off the binding to this host.")
  var unbindHost = false

  @Option(
    help: "Undo the last change: a file with the undo code, or - for standard input.", completion: .file())
  var undoCodeFile: String?

  @Flag(help: "Undo the last change; the command prompts for the undo code.")
  var undo = false

  @Flag(help: "Confirm that the new PIN works, and forget the old state.")
  var confirm = false

  mutating func perform() throws(Failure) {
    guard !confirm || !(undo || undoCodeFile != nil) else {
      throw Failure(.usage, "--confirm and --undo-code-file cannot be combined")
    }
    guard !(confirm || undo || undoCodeFile != nil) || !(isAboutMasks || new.replacesPIN) else {
      throw Failure(.usage, "--confirm and --undo end a change, and cannot be combined with another one")
    }
    try new.check()
    guard !(removeKeys && new.addsKey), !(unbindHost && new.bindHost) else {
      throw Failure(.usage, "a key or a host cannot be added and removed at once")
    }
    guard !(new.replacesPIN && isAboutMasks) else {
      throw Failure(
        .usage, "a new PIN cannot be combined with a change of additional keys or of the host",
        hint: "confirm the one change, then make the other")
    }
    guard connect != nil || !(check.isGiven || pairing.pair) else {
      throw Failure(.usage, "--state, --check-command and --pair require --connect")
    }
    guard connect == nil || !(confirm || undo || undoCodeFile != nil) else {
      throw Failure(.usage, "--connect is for a change: the device checks the present PIN or key before it")
    }
    let folder = try authenticator.open()
    if confirm {
      try confirmChange(in: folder)
    } else if undo || undoCodeFile != nil {
      try undoChange(in: folder)
    } else {
      try change(in: folder)
    }
  }

  /// Returns one of the user's protected records. The change covers all records that share its PIN.
  private func target(in folder: Authenticator) throws(Failure) -> Record {
    let (user, index) = (record.user, record.index)
    let all = try authenticator.using { () throws(AuthenticatorFault) in try folder.records() }
    let matching = all.filter { candidate in
      candidate.purpose != .host && (user.map { haveSameBytes($0, candidate.user) } ?? true)
        && (index ?? candidate.index) == candidate.index
    }
    guard let first = matching.first else {
      throw Failure(all.isEmpty ? AuthenticatorFault.noRecords : .unknownRecord, folder: authenticator.authenticator)
    }
    for other in matching where !haveSameBytes(other.user, first.user) {
      throw Failure(AuthenticatorFault.severalUsers, folder: authenticator.authenticator)
    }
    for other in matching where other.protectionGroup != first.protectionGroup {
      throw Failure(
        .usage, "the user's records have different PINs",
        hint: "choose one with --index N; records with the same PIN change with it")
    }
    return first
  }

  private func change(in folder: Authenticator) throws(Failure) {
    let target = try target(in: folder)
    if isAboutMasks {
      let masks = try masksToTakeOff(of: target.protection)
      let added = ProtectionSecret(key: try new.additionalKey(), host: try new.hostSecret())
      let old: ProtectionSecret
      if let connect {
        let present = try unlocking.secret(for: target.protection)
        try checkAtDevice(connect, present, of: target, in: folder)
        let (key, host) = (masks.contains(.key), masks.contains(.host))
        old = ProtectionSecret(key: key ? present.copyOfKey() : nil, host: host ? present.copyOfHost() : nil)
      } else {
        old = try unlocking.secret(for: masks)
      }
      try change(target, from: old, to: added, in: folder)
    } else {
      let old = try unlocking.secret(for: target.protection, question: "old PIN")
      if let connect { try checkAtDevice(connect, old, of: target, in: folder) }
      try change(target, from: old, to: replacement(of: old), in: folder)
    }
  }

  /// Has the device accept a one-time password under the present PIN or key.
  private func checkAtDevice(
    _ connect: String, _ old: borrowing ProtectionSecret, of target: Record, in folder: Authenticator
  ) throws(Failure) {
    let state = try check.stateFolder()
    let request = try check.request()
    let all = try authenticator.using { () throws(AuthenticatorFault) in try folder.records(user: target.user) }
    guard let record = all.first(where: { $0.purpose == .otp && $0.protectionGroup == target.protectionGroup }) else {
      throw Failure(.usage, "the records have no one-time password that a device could check")
    }
    let inquiry = try DeviceInquiry(at: connect, state: state, device: nil, waiting: waiting, pairing: pairing)
    try inquiry.ask(request.command, authenticator) { (prover, proof) throws(UserExchangeError) in
      try authenticator.person.check(
        old, of: record, with: request, as: prover, at: inquiry.endpoint, options: proof)
    }
  }

  /// Whether only an additional key or the binding to a host changes.
  private var isAboutMasks: Bool { new.addsKey || new.bindHost || removeKeys || unbindHost }

  /// Returns what replaces the PIN, or the key that stands in its place. An additional key and the binding to a host stay.
  private func replacement(of old: borrowing ProtectionSecret) throws(Failure) -> ProtectionSecret {
    let hasBoth = old.inputs.isSuperset(of: [.pin, .key])
    guard !(hasBoth && new.isKeyInstead) else {
      throw Failure(
        .usage, "the records need a key and a PIN",
        hint: "--add-key-file replaces the key, and --remove-keys removes it")
    }
    let key = try hasBoth ? old.copyOfKey() : new.newKey()
    return ProtectionSecret(pin: try new.newPIN(), key: key, host: old.copyOfHost())
  }

  /// Returns the masks that a change of the additional key or of the host takes off.
  private func masksToTakeOff(of inputs: ProtectionInputs) throws(Failure) -> ProtectionInputs {
    var old: ProtectionInputs = []
    if removeKeys {
      guard inputs.contains(.key) else { throw Failure(.usage, "the records need no key") }
      guard inputs.contains(.pin) else {
        throw Failure(.usage, "the records have no PIN", hint: "--new-pin-file or --no-pin replaces the key")
      }
      old.insert(.key)
    }
    if new.addsKey && inputs.contains(.key) {
      guard unlocking.keyFile != nil || unlocking.keyFd != nil else {
        throw Failure(
          .usage, "the records already need a key, which this one would replace",
          hint: "give the present key with --key-file or --key-fd")
      }
      Console.warning("the new key replaces the present one")
      old.insert(.key)
    }
    if new.bindHost && inputs.contains(.host) {
      throw Failure(.usage, "the records are already bound to a host", hint: "--unbind-host releases them")
    }
    if unbindHost {
      guard inputs.contains(.host) else { throw Failure(.usage, "the records are not bound to a host") }
      old.insert(.host)
    }
    return old
  }

  private func change(
    _ target: Record, from old: borrowing ProtectionSecret, to new: borrowing ProtectionSecret,
    in folder: Authenticator
  ) throws(Failure) {
    var random = SystemRandom()
    do throws(AuthenticatorFault) { try folder.checkChange(of: target, from: old, to: new) } catch {
      throw Failure(error, folder: authenticator.authenticator)
    }
    let code = try authenticator.using { () throws(AuthenticatorFault) in
      try folder.prepareChange(of: target, random: &random)
    }
    let text = try authenticator.using { () throws(AuthenticatorFault) in
      try code.withText { text in
        var bytes: [UInt8] = []
        for index in text.indices { bytes.append(text[index]) }
        return String(decoding: bytes, as: UTF8.self)
      }
    }
    if output.json {
      Console.result(.object([("user", .string(target.user)), ("undo_code", .string(text))]))
    } else {
      Console.result("undo code: \(text)")
    }
    // The undo code must be shown before the old secret is erased: if the old PIN was mistyped, the secret would be
    // lost without it.
    if let loss = Failure(lostResult: Console.lostResult) { throw loss.afterResult() }
    if !output.json && Console.isResultTerminal {
      try SecretPrompt.awaitEnter("write it down, then press Enter: ")
    }
    do throws(AuthenticatorFault) {
      try folder.change(target, from: old, to: new, under: code, random: &random)
    } catch { throw Failure(error, folder: authenticator.authenticator).afterResult() }
    Console.note("the protection is changed; if the device accepts the next code, run: \(again("--confirm"))")
    Console.note("if it does not, \(suspicion); run: \(again("--undo"))")
  }

  /// The reason why the device may reject codes from now on.
  private var suspicion: String {
    guard isAboutMasks || connect != nil else { return "the old PIN or key was wrong" }
    return connect == nil && (removeKeys || unlocking.keyFile != nil || unlocking.keyFd != nil)
      ? "the present key was wrong, or the PIN of that code"
      : "the PIN of that code was wrong, or another key was given"
  }

  private func again(_ option: String) -> String {
    "holdfast otp protect --authenticator \(authenticator.authenticator.shellWord) \(option)"
  }

  private func undoChange(in folder: Authenticator) throws(Failure) {
    let user = try user(in: folder)
    let text = try undoCodeText()
    let code = try authenticator.using { () throws(AuthenticatorFault) in try UndoCode(text.bytes) }
    try authenticator.using { () throws(AuthenticatorFault) in try folder.undoChange(user: user, under: code) }
    report("restored to the state before the last change", "undone", user)
  }

  private func undoCodeText() throws(Failure) -> SecretBytes {
    if let undoCodeFile { return try SecretInput.nextLine(undoCodeFile, of: "--undo-code-file", limit: 256) }
    return try SecretPrompt.ask("undo code", option: "--undo-code-file")
  }

  private func confirmChange(in folder: Authenticator) throws(Failure) {
    let (user, index) = (try user(in: folder), record.index)
    let wasOpen = try authenticator.using { () throws(AuthenticatorFault) in
      try folder.confirmProtection(user: user, index: index)
    }
    guard wasOpen else { throw Failure(AuthenticatorFault.noChange, folder: authenticator.authenticator) }
    report("the last change is confirmed", "confirmed", user)
  }

  private func user(in folder: Authenticator) throws(Failure) -> String {
    if let user = record.user { return user }
    return try target(in: folder).user
  }

  private func report(_ text: String, _ state: String, _ user: String) {
    if output.json {
      Console.result(.object([("user", .string(user)), ("state", .string(state))]))
    } else {
      Console.result("\(user): \(text)")
    }
  }
}
