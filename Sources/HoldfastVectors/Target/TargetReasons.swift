/// The reasons why the tests of some types are not sent to a device.
enum TargetReason {
  static let otherKey = "the device does not have the key of the vectors"
  static let noIssuer = "no file has the issuer's private key: add session_test.json"

  /// Returns the reason for a type of groups that is never sent.
  static func forType(_ type: String) -> String {
    let reason: String =
      switch type {
      case "SessionM1", "SessionM3", "SessionReply", "ActivationReply", "ActivationGrant", "UserSyncResult",
        "UserStateResult", "HostCodeResult", "BulletinAnswer", "AuditPageAnswer", "AuditPage", "AuditEntry",
        "SealRequest":
        "a device writes it and never reads it"
      case "Proof": "its nonce follows from a challenge, which cannot be set from outside"
      case "ActivationAtDevice", "UnlockingAtDevice":
        "the device's challenge, fresh key and code cannot be set from outside"
      case "HOTP", "TOTP", "OCRA", "OCRASuite", "Seal", "SealQuestion":
        "the secret, the time and the position of a user's codes cannot be set from outside"
      case "AuditReceipt": "the home of the device's log, and the log, cannot be set from outside"
      case "BulletinState", "BulletinGroup": "it follows from what the owner and bulletins have told a device"
      case "FirmwareImage": "the owner's commands read it"
      case "ActuatorCommandsCBOR", "ActuatorCommandsJSON", "ActuatorAnswerCBOR", "ActuatorAnswerJSON",
        "ActuatorCommand":
        "an actuator is at another endpoint"
      default: "no device reads it"
      }
    return "\(type): \(reason)"
  }
}
