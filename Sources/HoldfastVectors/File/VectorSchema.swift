/// A schema that a file of vectors can name: one of Holdfast, or one of Wycheproof.
///
/// Source: `vectors/schemas`; C2SP/wycheproof, `schemas/`. A name ends with the version, which is ignored.
struct VectorSchema {
  /// The only types of groups in one of Holdfast's schemas; nil for one of Wycheproof.
  let ownTypes: [String]?

  /// Finds the schema with a file name such as `mac_test_schema_v1.json`; nil if it is unknown.
  init?(file: String) {
    let words = file.split(separator: "_", omittingEmptySubsequences: false)
    guard let end = words.firstIndex(where: { $0 == "schema" || $0 == "schema.json" }) else { return nil }
    let name = words[..<end].joined(separator: "_")
    ownTypes = Self.ownTypes(name)
    guard ownTypes != nil || Self.wycheproof.contains(name) else { return nil }
  }

  private static func ownTypes(_ name: String) -> [String]? {
    switch name {
    case "measurement": ["Measurement", "MeasurementConfiguration", "ReleaseKeys", "Evidence"]
    case "proof": ["Proof"]
    case "measurement_token": ["MeasurementTokenCOSE", "MeasurementTokenJOSE"]
    case "session":
      [
        "SessionRound", "SessionM1", "SessionM2", "SessionM3", "SessionRequest", "SessionReply", "SessionCompatibility",
        "RequestNumber",
      ]
    case "activation":
      [
        "OneUseCode", "ActivationMessage", "ActivationReply", "ActivationGrant", "Activation", "ActivationAtDevice",
        "Unlocking", "UnlockingAtDevice", "UserSyncResult", "UserStateResult", "HostCodeResult",
      ]
    case "state": ["StateString", "StateRecords", "StoreState", "UndoCode", "UndoCopy"]
    case "frames": ["Frames"]
    case "service_discovery": ["ServiceRecord", "ServiceAnswer"]
    case "attestation_token": ["AttestationToken"]
    case "actuator":
      [
        "ActuatorCommandsCBOR", "ActuatorCommandsJSON", "ActuatorAnswerCBOR", "ActuatorAnswerJSON", "ActuatorCommand",
      ]
    case "firmware_image": ["FirmwareImage"]
    case "bulletin": ["Bulletin", "BulletinMessage", "BulletinAnswer", "BulletinState", "BulletinGroup"]
    case "audit_page": ["AuditPage", "AuditReceipt", "AuditMail", "AuditPageAnswer"]
    case "audit": ["AuditEntry", "AuditFile"]
    case "seal": ["SealFields", "SealQuestion", "Seal", "SealRequest"]
    case "oath_hotp": ["HOTP"]
    case "oath_totp": ["TOTP"]
    case "oath_ocra": ["OCRA", "OCRASuite"]
    default: nil
    }
  }

  private static let wycheproof: Set<String> = [
    "aead_test", "bls_aggregate_verify", "bls_hash_to_g2", "bls_sig_verify", "c2sp_chunked_encryption", "daead_test",
    "dsa_p1363_verify", "dsa_verify", "ec_curve_test", "ecdh_ecpoint_test", "ecdh_pem_test", "ecdh_test",
    "ecdh_webcrypto_test", "ecdsa_bitcoin_verify", "ecdsa_p1363_verify", "ecdsa_verify", "eddsa_verify",
    "fpe_list_test", "fpe_str_test", "hkdf_test", "ind_cpa_test", "json_web_crypto", "json_web_encryption",
    "json_web_key", "json_web_signature", "keywrap_test", "mac_test", "mac_with_iv_test", "mldsa_sign_noseed",
    "mldsa_sign_seed", "mldsa_verify", "mlkem_encaps_test", "mlkem_keygen_seed_test",
    "mlkem_semi_expanded_decaps_test", "mlkem_test", "pbe_test", "pbkdf_test", "primality_test", "rsaes_oaep_decrypt",
    "rsaes_pkcs1_decrypt", "rsassa_pkcs1_generate", "rsassa_pkcs1_verify", "rsassa_pss_verify",
    "rsassa_pss_with_parameters_verify", "xdh_asn_comp", "xdh_comp", "xdh_jwk_comp", "xdh_pem_comp",
  ]
}
