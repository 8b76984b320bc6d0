import HoldfastCore
import HoldfastFormats
import TestSupport
import Testing

import HoldfastIssuer

/// Settings for some tokens only: of an app, a version of it, or for a device.
@Suite struct ScopedSettingsTests {
  private let version = AppVersion(major: 1, minor: 2, patch: 3)
  private let device = DeviceID(filledWith: 7)

  private func scoped(
    _ text: String = "a", app: BoundedText<64>? = nil, version: AppVersion? = nil, device: DeviceID? = nil
  ) -> ScopedSettings? {
    ScopedSettings(app: app, version: version, device: device, settings: AppSettings(.text, Array(text.utf8))!)
  }

  @Test func `settings are for an app, a device or both, and a version belongs to an app`() {
    #expect(scoped() == nil)
    #expect(scoped(version: version) == nil)
    #expect(scoped(version: version, device: device) == nil)
    #expect(scoped(app: "lock") != nil)
    #expect(scoped(device: device) != nil)
    #expect(scoped(app: "lock", device: device) != nil)
    #expect(scoped(app: "lock", version: version) != nil)
    #expect(scoped(app: "lock", version: version, device: device) != nil)
  }

  /// Settings for one token, each more specific than those before it.
  private var rising: [ScopedSettings] {
    [
      scoped("app", app: "lock"), scoped("version", app: "lock", version: version), scoped("device", device: device),
      scoped("both", app: "lock", device: device), scoped("all", app: "lock", version: version, device: device),
    ].compactMap { $0 }
  }

  private func settings(_ policy: ServicePolicy) -> String? {
    policy.conditions(of: "lock", version, for: device).settings?.text
  }

  @Test func `the most specific settings count, in whatever order they stand`() throws {
    var policy = ServicePolicy()
    policy.conditions.settings = AppSettings(.text, Array("policy".utf8))
    #expect(settings(policy) == "policy")
    for count in 1...rising.count {
      let some = Array(rising.prefix(count))
      for scopes in [some, some.reversed()] {
        policy.scopedSettings = scopes
        #expect(settings(policy) == rising[count - 1].settings.text)
      }
    }
  }

  @Test func `settings for another app, version or device do not count`() throws {
    var policy = ServicePolicy()
    let others = [
      scoped(app: "other"), scoped(app: "lock", version: .zero), scoped(device: DeviceID()),
      scoped(app: "other", device: device), scoped(app: "lock", device: DeviceID()),
      scoped(app: "lock", version: .zero, device: device), scoped(app: "other", version: version),
    ]
    policy.scopedSettings = others.compactMap { $0 }
    #expect(policy.scopedSettings.count == 7)
    #expect(settings(policy) == nil)
  }

  @Test func `settings take the place of those for the same tokens, and of no others`() throws {
    var policy = ServicePolicy()
    for scope in rising { #expect(policy.set(scope) == true) }
    #expect(policy.scopedSettings == rising)
    let changed = try #require(scoped("changed", app: "lock", device: device))
    #expect(policy.set(changed) == true)
    #expect(policy.set(changed) == false)
    #expect(policy.scopedSettings == Array(rising[..<3]) + [changed, rising[4]])
    let unknown = try #require(scoped(app: "lock", device: DeviceID()))
    #expect(policy.set(unknown, removing: true) == false)
    #expect(policy.set(rising[1], removing: true) == true)
    #expect(policy.scopedSettings == [rising[0], rising[2], changed, rising[4]])
    for (index, one) in rising.enumerated() {
      for (other, two) in rising.enumerated() { #expect(one.hasScope(of: two) == (index == other)) }
    }
  }

  @Test func `a policy has at most 32 of them, of which one may still change`() throws {
    var policy = ServicePolicy()
    for number in 0..<32 { #expect(policy.set(try #require(scoped(app: BoundedText("app\(number)")))) == true) }
    #expect(policy.set(try #require(scoped(app: "one more"))) == nil)
    #expect(policy.set(try #require(scoped("b", app: "app31"))) == true)
    #expect(try ServicePolicy(json: policy.json.compact()) == policy)
    policy.scopedSettings.append(try #require(scoped(app: "one more")))
    #expect(wrongMember(policy.json.compact()) == "settings_for")
  }

  @Test(
    arguments: [
      (#"{"app":"lock"}"#, ".settings"), (#"{"settings":S}"#, ""), (#"{"version":[1,2,3],"settings":S}"#, ""),
      (#"{"version":[1,2,3],"device":"D","settings":S}"#, ""), (#"{"app":"","settings":S}"#, ".app"),
      (#"{"app":"lock","version":[1,2],"settings":S}"#, ".version"),
      (#"{"app":"lock","version":[1,2,3,4],"settings":S}"#, ".version"),
      (#"{"device":"0707","settings":S}"#, ".device"),
      (#"{"device":"0707070707070707070707070707070G","settings":S}"#, ".device"),
      (#"{"app":"lock","model":"x","settings":S}"#, ".model"),
      (#"{"app":"lock","settings":{"type":"text"}}"#, ".settings.value"),
    ])
  func `a mistake in one of them is named`(text: String, path: String) {
    let settings = #"{"type":"text","value":"YQ=="}"#
    let whole = text.replacing("S}", with: settings + "}").replacing(
      #""D""#, with: "\"\(String(repeating: "07", count: 16))\"")
    let first = #"{"app":"first","settings":\#(settings)}"#
    #expect(wrongMember(policy(with: [first, whole])) == "settings_for[1]" + path)
  }

  @Test func `a device that is none is told how many digits there are`() {
    let device = String(repeating: "0G", count: 16)
    let json = policy(with: [#"{"device":"\#(device)","settings":{"type":"text","value":"YQ=="}}"#])
    do throws(ServicePolicyFault) {
      _ = try ServicePolicy(json: json)
      Issue.record("the device was read")
    } catch {
      guard case .member(let mistake) = error else { return }
      #expect(mistake.expectation == .hexadecimal(digitCount: 32))
    }
  }

  @Test func `two for the same tokens are a mistake`() {
    let settings = #""settings":{"type":"text","value":"YQ=="}"#
    let (one, other) = (#"{"app":"lock",\#(settings)}"#, #"{"app":"lock","version":[1,2,3],\#(settings)}"#)
    #expect(wrongMember(policy(with: [one, other])) == nil)
    #expect(wrongMember(policy(with: [one, other, one])) == "settings_for[2]")
  }

  private func policy(with elements: [String]) -> [UInt8] {
    let least = #""issuer":"i","attestation_issuer":"a","audience":"u","images":{}"#
    return Array(#"{\#(least),"settings_for":[\#(elements.joined(separator: ","))]}"#.utf8)
  }

  /// The way to the member that is wrong; nil where nothing is.
  private func wrongMember(_ json: [UInt8]) -> String? {
    do throws(ServicePolicyFault) { _ = try ServicePolicy(json: json) } catch {
      guard case .member(let mistake) = error else { return "\(error)" }
      return mistake.pathText
    }
    return nil
  }
}
