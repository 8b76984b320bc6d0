import HoldfastCore
import HoldfastDevice
import HoldfastKeys
import HoldfastOpenSSL
import HoldfastText

/// Whether a device's folder is ready to be served: its files, its policy, its issuers and its clock.
func deviceChecks(_ path: String) -> [FindingText] {
  let device: DeviceFolder
  let summary: LedgerSummary
  let issuerCount: Int
  do throws(Failure) {
    device = try DeviceFolder.opened(path)
    let ledger = try device.ledger()
    summary = try recording { () throws(LedgerFault) in try ledger.summary() }
    issuerCount = try recording { () throws(LedgerFault) in try ledger.issuers() }.count
  } catch { return [FindingText("device-folder", error)] }
  return [
    FindingText(
      "device-folder", .ok, "\(path) holds device \(hexadecimal(device.descriptor.deviceID)), and its ledger opens"),
    policyCheck(device),
    issuerCount == 0
      ? FindingText(
        "issuers", .missing, "the device trusts no issuer, so no token counts",
        hint: "holdfast service show --json gives the key for holdfast device trust --dir \(path.shellWord)")
      : FindingText("issuers", .ok, "the device trusts \(issuerCount == 1 ? "one issuer" : "\(issuerCount) issuers")"),
    clockCheck(floor: summary.clockFloor, path),
  ]
}

private func policyCheck(_ device: DeviceFolder) -> FindingText {
  let policy = device.policyReading
  guard policy.fault == nil, !policy.policy.commands.isEmpty else {
    return FindingText(
      "policy", .missing, "the policy \(policy.summary)",
      hint: "mend \(device.path.shellWord)/policy.json; holdfast device policy --dir \(device.path.shellWord) reads it")
  }
  return FindingText("policy", .ok, "the policy allows \(policy.summary)")
}

/// The device takes the later of its floor and the host's clock, so a clock that stands below the floor only stands still.
private func clockCheck(floor: UInt64, _ path: String) -> FindingText {
  let text = Timestamp(unixSeconds: floor)
  guard let now = SystemClock().unixSeconds(), now >= floor else {
    return FindingText(
      "clock", .note, "this host's clock stands before the device's floor, \(text)",
      hint: "set the clock; if the floor is wrong: holdfast device floor --dir \(path.shellWord)")
  }
  return FindingText("clock", .ok, "this host's clock stands after the device's floor, \(text)")
}
