import HoldfastVectors
import Testing

/// Examples in the form of the COSE working group.
@Suite struct COSEExampleTests {
  // HMac-01 of the working group: HMAC with SHA-256 and the key in the file.
  private let message = "8443A10105A054546869732069732074686520636F6E74656E742E5820"
  private let tag = "A1A848D3471F9D61EE49018D244C824772F223AD4F935293F1789FC3A08D8C58"

  private func outcome(_ encoded: String, fail: String = "", algorithm: String = "HS256") throws -> String {
    let report = try replay(
      """
      {"title":"HMAC-01",\(fail)"input":{"plaintext":"This is the content.","mac0":{"protected":{"alg":"\(algorithm)"},
      "recipients":[{"key":{"kty":"oct","k":"hJtXIZ2uSN5kbQfbtTNWbpdmhkV8FJG-Onbc6mxCcYg"}}]}},
      "output":{"cbor":"\(encoded)"}}
      """)
    return report.skips.first?.reason ?? report.failures.first?.happened ?? "passed"
  }

  @Test func `a COSE_Mac0 is accepted with its tag and without`() throws {
    #expect(try outcome("D1" + message + tag) == "passed")
    #expect(try outcome(message + tag) == "passed")
    #expect(try outcome("D1" + message + tag, fail: "\"fail\":true,") == "accepted")
    #expect(try outcome("D1" + message + tag, algorithm: "AES-MAC-128/64") == "alg AES-MAC-128/64")
  }

  @Test func `a countersigned message is opened, and skipped because its countersignature is not checked`() throws {
    func outcome(_ encoded: String) throws -> String {
      let report = try replay(
        """
        {"input":{"plaintext":"This is the content.","mac0":{"protected":{"alg":"HS256"},"countersign0":{},
        "recipients":[{"key":{"kty":"oct","k":"hJtXIZ2uSN5kbQfbtTNWbpdmhkV8FJG-Onbc6mxCcYg"}}]}},
        "output":{"cbor":"\(encoded)"}}
        """)
      return report.skips.first?.reason ?? report.failures.first?.happened ?? "passed"
    }
    #expect(try outcome("D1" + message + tag) == "a countersignature, of a message that opens")
    #expect(try outcome("D1" + message + tag.dropLast() + "9") == "refused: MAC")
  }

  @Test func `another tag, algorithm or MAC, and anything after the message, is refused`() throws {
    #expect(try outcome("D2" + message + tag) == "refused: CBOR")
    #expect(try outcome("D1" + message + tag + "00") == "refused: CBOR")
    #expect(try outcome("D1" + message.replacing("A10105", with: "A10106") + tag) == "refused: MAC of 32 bytes")
    #expect(try outcome("D1" + message.replacing("A10105", with: "A10118") + tag) == "refused: CBOR")
    #expect(try outcome("D1" + message.replacing("43A10105A0", with: "40A10105") + tag) == "refused: MAC")
    #expect(try outcome("D1" + message + tag.dropLast() + "9") == "refused: MAC")
    #expect(try outcome("D1" + message.dropLast(4) + "48" + tag.prefix(16)) == "refused: MAC of 8 bytes")
  }

  // ECDSA-01 of the working group.
  private let signed =
    "D8628443A10300A054546869732069732074686520636F6E74656E742E818343A10126A1044231315840D71C05DB52C9CE7F"
    + "1BF5AAC01334BBEACAC1D86A2303E6EEAA89266F45C01ED602CA649EAF790D8BC99D2458457CA6A872061940E7AFBE48E289"
    + "DFAC146AE258"
  private let signer =
    #""kty":"EC","crv":"P-256","x":"usWxHK2PmfnHKwXPS54m0kTcGJ90UiglWiGahtagnv8","#
    + #""y":"IBOL-C3BttVivg-lSreASjpkttcsz-1rb7btKLv8EX4""#

  private func outcome(signed encoded: String, signers: Int = 1, more: String = "") throws -> String {
    let one = #"{"key":{\#(signer)},"protected":{"alg":"ES256"}\#(more)}"#
    let all = [String](repeating: one, count: signers).joined(separator: ",")
    return try replayed(
      #"{"input":{"plaintext":"This is the content.","sign":{"signers":[\#(all)]}},"output":{"cbor":"\#(encoded)"}}"#)
  }

  // A message to one recipient, made by another library: ECDH-ES + HKDF-256, and ECDH-ES + A128KW, with A256GCM.
  private let agreed =
    "d8608443a10103a1054c000102030405060708090a0b5818149a7a2f2b4d07d787c7711cdfd85727143a8ff5e0100c7b8183"
    + "44a1013818a120a40102200121582052c6ff5b71de65d83c75d393e249ec03894370515d0b229b1c6224681f2a5030225820"
    + "b6f323c20c20d021d611e087cf482f5297e6135cbee6d3994832164e479e6e9640"
  private let wrapped =
    "d8608443a10103a1054c000102030405060708090a0b581850ee85147b68aa3deefc1e4c42e9e45329f945edec188b0f8183"
    + "44a101381ca120a40102200121582052c6ff5b71de65d83c75d393e249ec03894370515d0b229b1c6224681f2a5030225820"
    + "b6f323c20c20d021d611e087cf482f5297e6135cbee6d3994832164e479e6e9658288c6cfdd63f2dc7e2f7b6e3c11699418c"
    + "1ee38be4454fc1302dbdd6a793cb3e9782e165a6ed54b9e1"

  private func outcome(
    encrypted: String, algorithm: String = "ECDH-ES", unsent: String = "", kid: String = ""
  ) throws -> String {
    let key =
      #"\#(kid)"kty":"EC","crv":"P-256","x":"n62Erq4Iu-9_AQAU2CzvagneKwz4cbXODE8dE6WaWTQ","#
      + #""y":"B8tFdp8QcOLCRw_lsb_mMTPAsM3GTqS_N5Go7CoH_U8","d":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEjRWeJCrze8""#
    return try replayed(
      #"{"input":{"plaintext":"Holdfast","enveloped":{"protected":{"alg":"A256GCM"},"recipients":[{"key":{\#(key)},"#
        + #""protected":{"alg":"\#(algorithm)"}\#(unsent)}]}},"output":{"cbor":"\#(encrypted)"}}"#)
  }

  // Appendix C.5.4 of RFC 8152, to two recipients: ECDH-ES with a compressed point, and A256KW.
  private let shared =
    "D8618543A10105A054546869732069732074686520636F6E74656E742E5820BF48235E809B5C42E995F2B7D5FA13620E7ED8"
    + "34E337F6AA43DF161E49E9323E828344A101381CA220A4010220032158420043B12669ACAC3FD27898FFBA0BCD2E6C366D53"
    + "BC4DB71F909A759304ACFB5E18CDC7BA0B13FF8C7636271A6924B1AC63C02688075B55EF2D613574E7DC242F79C322F50458"
    + "1E62696C626F2E62616767696E7340686F626269746F6E2E6578616D706C655828339BC4F79984CDC6B3E6CE5F315A4C7D2B"
    + "0AC466FCEA69E8C07DFBCA5BB1F661BC5F8E0DF9E3EFF58340A2012404582430313863306165352D346439622D343731622D"
    + "626664362D65656633313462633730333758280B2C7CFCE04E98276342D6476A7723C090DFDD15F9A518E7736549E9983706"
    + "95E6D6A83B4AE507BB"

  private func outcome(shared encoded: String, kid: String = "018c0ae5-4d9b-471b-bfd6-eef314bc7037") throws -> String {
    let first = #"{"key":{"kty":"EC","kid":"bilbo"},"protected":{"alg":"ECDH-ES-A128KW"},"unsent":{"compressed":1}}"#
    let second =
      #"{"key":{"kty":"oct","kid":"\#(kid)","k":"hJtXIZ2uSN5kbQfbtTNWbpdmhkV8FJG-Onbc6mxCcYg"},"#
      + #""unprotected":{"alg":"A256KW"}}"#
    return try replayed(
      #"{"input":{"plaintext":"This is the content.","mac":{"protected":{"alg":"HS256"},"recipients":[\#(first),"#
        + #"\#(second)]}},"output":{"cbor":"\#(encoded)"}}"#)
  }

  private func replayed(_ file: String) throws -> String {
    let report = try replay(file)
    return report.skips.first?.reason ?? report.failures.first?.happened ?? "passed"
  }

  @Test func `every signer signs the content, its own headers and those of the message`() throws {
    #expect(try outcome(signed: signed) == "passed")
    #expect(try outcome(signed: signed, signers: 2) == "refused: 1 signers")
    #expect(try outcome(signed: signed.replacing("43A10300A0", with: "43A10301A0")) == "refused: signature")
    #expect(try outcome(signed: signed.replacing("43A10126", with: "44A1013822")) == "refused: signature")
    #expect(try outcome(signed: signed, more: #","external":"00""#) == "refused: signature")
  }

  @Test func `a recipient's key opens what an ephemeral key agreed with it, or wrapped for it`() throws {
    #expect(try outcome(encrypted: agreed) == "passed")
    #expect(try outcome(encrypted: wrapped, algorithm: "ECDH-ES-A128KW") == "passed")
    #expect(try outcome(encrypted: agreed.dropLast(2) + "4100") == "refused: ciphertext of the recipient")
    #expect(try outcome(encrypted: wrapped.dropLast(2) + "e2", algorithm: "ECDH-ES-A128KW") == "refused: key wrap")
    #expect(try outcome(encrypted: agreed.replacing("a1013818", with: "a1013819")) == "refused: tag")
    #expect(try outcome(encrypted: agreed.replacing("a1013818", with: "a101381a")) == "refused: alg of the recipient")
    #expect(try outcome(encrypted: agreed.replacing("52c6ff", with: "52c6fe")) == "refused: no shared secret")
    #expect(
      try outcome(encrypted: agreed.replacing("2001215820", with: "2002215820")) == "refused: key on another curve")
  }

  @Test func `of several recipients, the one that the key is for gives the key of the content`() throws {
    #expect(try outcome(shared: shared) == "passed")
    #expect(try outcome(shared: shared, kid: "bilbo.baggins@hobbiton.example") == "refused: key")
    #expect(try outcome(shared: shared, kid: "sam") == "refused: 0 recipients with that key")
    let wrapped = shared.dropLast(2) + "BC"
    #expect(try outcome(shared: String(wrapped)) == "refused: key wrap")
    let both = shared.replacing("828344A1", with: "838344A1") + shared.suffix(172)
    #expect(try outcome(shared: both) == "refused: 2 recipients with that key")
  }

  @Test func `the only recipient is the one for the key, whatever its id`() throws {
    let named = agreed.replacing("a120a401", with: "a204416120a401")
    #expect(try outcome(encrypted: named, kid: #""kid":"a","#) == "passed")
    #expect(try outcome(encrypted: named, kid: #""kid":"b","#) == "passed")
    let textual = agreed.replacing("a120a401", with: "a204616120a401")
    #expect(try outcome(encrypted: textual, kid: #""kid":"a","#) == "passed")
  }

  @Test func `what is not read is skipped with its reason`() throws {
    #expect(try outcome(encrypted: agreed, algorithm: "ECDH-SS") == "alg ECDH-SS of a recipient")
    #expect(try outcome(encrypted: agreed, unsent: #","unsent":{"compressed":1}"#) == "compressed point")
    #expect(try outcome(encrypted: agreed, unsent: #","unsent":{"compressed":0}"#) == "passed")
    #expect(try outcome(encrypted: agreed, unsent: #","unsent":{"pub_other":"x"}"#) == "a context that is not sent")
  }
}
