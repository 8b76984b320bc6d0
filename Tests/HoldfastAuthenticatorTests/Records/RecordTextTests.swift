import HoldfastCore
import HoldfastFormats
import TestSupport
import Testing

import HoldfastAuthenticator

/// Records as people and programs read them.
@Suite struct RecordTextTests {
  @Test func `a record in JSON has each of its members, by the names that programs rely on`() throws {
    let test = try TestAuthenticator()
    let credential = Credential(issuer: "Example", user: "alice", method: .totp, secret: rfcSecret.secret)
    try test.add(
      [
        NewRecord(
          index: 3, purpose: .otp, credential: credential, deviceID: DeviceID(filledWith: 7), lookAheadWindow: 10,
          sealFieldByteLimit: 64)
      ], protection: pin("1357"))
    try test.authenticator.synchronise(user: "alice", offsetSeconds: -3, otpNext: nil, sealNext: nil, now: testTime)
    #expect(
      String(decoding: try test.authenticator.records()[0].json.compact(), as: UTF8.self)
        == #"{"user":"alice","index":3,"purpose":"otp","issuer":"Example","device_id":"07070707070707070707070707070707","#
        + #""method":"TOTP SHA1 8 digits 30 s","protection":"pin","requires":["pin"],"next_counter":null,"#
        + #""acknowledged_counter":null,"clock_ahead_seconds":0,"clock_behind_seconds":3,"last_time_step":null,"#
        + #""last_synchronised":1750000000,"look_ahead_window":10,"confirmed":true,"change_open":false,"#
        + #""interrupted":false,"seal_field_limit":64,"demand_pin_length":null,"demand_key":false}"#)
  }

  @Test func `in JSON, kinds of protection are joined, and a demand names the length of the PIN and the key`() throws {
    let test = try TestAuthenticator()
    let credential = Credential(user: "alice", method: .totp, secret: randomSecret.secret)
    let demand = ProtectionDemand(pinLength: 4, needsKey: true)
    let both = ProtectionSecret(pin: try PIN("1357"), key: ExternalKey([UInt8](repeating: 7, count: 32).span)!)
    try test.add([NewRecord(index: 1, purpose: .otp, credential: credential, demand: demand)], protection: both)
    let json = String(decoding: try test.authenticator.records()[0].json.compact(), as: UTF8.self)
    #expect(json.contains(#""protection":"pin+key","requires":["pin","key"]"#))
    #expect(json.hasSuffix(#""demand_pin_length":4,"demand_key":true}"#))
  }

  @Test(
    arguments: [
      ([], [], "no PIN"), (.pin, ["pin"], "PIN"), (.key, ["key"], "key"),
      (.host, ["host"], "no PIN, bound to a host"), ([.pin, .key], ["pin", "key"], "PIN, key"),
      ([.pin, .key, .host], ["pin", "key", "host"], "PIN, key, bound to a host"),
    ] as [(ProtectionInputs, [String], String)])
  func `what a record needs is named, and a record without PIN and key says so`(
    inputs: ProtectionInputs, names: [String], text: String
  ) {
    #expect(inputs.names == names)
    #expect(inputs.text == text)
  }

  @Test func `a secret of eight or more printable characters is text, of which a PIN is no protection`() {
    func isText(_ secret: [UInt8]) -> Bool {
      Credential(user: "alice", method: .totp, secret: secret.secret).isText
    }
    #expect(isText([0x20, 0x7e, 0x20, 0x7e, 0x41, 0x30, 0x61, 0x2d]))
    #expect(!isText(Array("7 bytes".utf8)))
    #expect(!isText(randomSecret))
    for strange in [0x00, 0x1f, 0x7f, 0x80, 0xff] as [UInt8] {
      for place in [0, 7] {
        var secret = Array("password".utf8)
        secret[place] = strange
        #expect(!isText(secret), "\(strange) at \(place)")
      }
    }
  }
}
