#if Service
import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastService

struct RotateKey: AdministrationVerb {
  static let configuration = CommandConfiguration(
    abstract: "Make a new key of the issuer, which signs after a time.",
    discussion: """
      Until then, the key before signs, and devices can be made to trust the new one: /.well-known/jwks.json has both, and \
      holdfast device trust takes a key from it. Devices without a network learn of it from a bulletin: introduce-key.
      """)

  @Option(help: "The time until the key signs, such as 30d.") var after = "30d"
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    guard let now = SystemClock().unixSeconds() else { throw ServiceFailure(.fault, "there is no clock") }
    return OperationCall(
      name: "rotateKey", body: [("active", .integer(now + (try seconds(after, of: "--after"))))])
  }
}

/// The device or the group at which a verb is about a key.
struct KeyTarget: ParsableArguments {
  @Option(help: "The device: its id or its label.") var device: String?
  @Option(help: "The group, in place of a device.") var group: String?

  /// Returns the members of a body that name it.
  func members(_ fleet: Fleet) throws(ServiceFailure) -> [(String, JSONValue)] {
    switch (device, group) {
    case (let device?, nil): return [("device", .string(try fleet.device(named: device)))]
    case (nil, let group?): return [("group", .string(group))]
    default:
      throw ServiceFailure(
        .usage, "a key is introduced or ended at a device or a group", hint: "give --device or --group")
    }
  }
}

struct IntroduceKey: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "introduce-key", abstract: "Have bulletins introduce a key of the issuer to a device or a group.",
    discussion: """
      A device that takes the bulletin trusts tokens and bulletins of the key for a time, which cannot be changed later. Only a device \
      whose policy.json names the introducing key in introducers takes it. Others refuse it, and microcontrollers have no room for it: \
      both miss every later bulletin of the introducing key for the same device or group, so choose one without them.
      """)

  @Argument(help: "The key, as list keys shows it. It may sign already, or later.") var key: String
  @OptionGroup var target: KeyTarget
  @Option(
    help: "The key that introduces it. By default, the one that introduced the key that signs now, or else that one.")
  var by: String?
  @Option(help: "The time from which devices trust it, such as 2027-01-31T00:00:00Z. By default, the present time.")
  var from: String?
  @Option(help: "The number of days for which devices trust it, 1 to 36500. The next key should sign before their end.")
  var days: UInt64 = 730
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    guard (1...36_500).contains(days) else { throw ServiceFailure(.usage, "--days must be 1 to 36500") }
    guard let now = SystemClock().unixSeconds() else { throw ServiceFailure(.fault, "there is no clock") }
    var body = try target.members(fleet)
    if let by { body.append(("introducer", .string(by))) }
    let start = try unixSeconds(from, of: "--from")
    if let start { body.append(("from", .integer(start))) }
    body.append(("until", .integer(min((start ?? now) + days * 86_400, maximumInteger))))
    return OperationCall(name: "introduceKey", key: key, body: body)
  }

  func illustrate(_ result: JSONValue, _ configuration: ServiceConfiguration) throws(ServiceFailure) {
    let introducer = result["introducer"]?.text ?? ""
    Output.note(
      """
      microcontrollers, and devices whose policy.json does not name \(introducer) in introducers, do not take this, and miss later \
      bulletins of that key for the same device or group
      """)
  }
}

struct EndKey: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "end-key", abstract: "Have bulletins end a key of the issuer at a device or a group, for ever.",
    discussion: """
      A device that takes the bulletin trusts the key no more: its tokens and bulletins are refused, and nothing brings it back but the \
      owner. The last bulletin of the key introduces again what the key introduced, so that a device which cannot take the new key keeps \
      the old one. Microcontrollers do not take it. A device whose policy.json names the key as audit.home or in introducers needs its \
      owner to name another.
      """)

  @Argument(help: "The key, as list keys shows it.") var key: String
  @OptionGroup var target: KeyTarget
  @Flag(
    help:
      "End it although the service has not introduced the key that signs now to these devices. They must trust it already."
  )
  var withoutSuccessor = false
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    let flag: [(String, JSONValue)] = withoutSuccessor ? [("without_successor", .bool(true))] : []
    return OperationCall(name: "endKey", key: key, body: try target.members(fleet) + flag)
  }

  func illustrate(_ result: JSONValue, _ configuration: ServiceConfiguration) throws(ServiceFailure) {
    Output.note("microcontrollers keep the key, and miss later bulletins of it and of the key that introduced it")
    Output.note(hint: "provers with tokens of this key need new ones: enroll")
  }
}
#endif
