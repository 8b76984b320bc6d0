/// Key containers, as text: what RFC 6030's figures say, with places to say something else.
struct ContainerText {
  var version = "1.0"
  var beforeRoot = ""
  /// `EncryptionKey` and `MACMethod`.
  var protection = ""
  var packages = [ContainerText.key()]
  var afterPackages = ""

  var text: String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    \(beforeRoot)
    <KeyContainer Version="\(version)" xmlns="urn:ietf:params:xml:ns:keyprov:pskc"
      xmlns:ds="http://www.w3.org/2000/09/xmldsig#" xmlns:xenc="http://www.w3.org/2001/04/xmlenc#"
      xmlns:xenc11="http://www.w3.org/2009/xmlenc11#"
      xmlns:pkcs5="http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#">
    \(protection)\(packages.joined())\(afterPackages)
    </KeyContainer>
    """
  }

  /// `12345678901234567890`.
  static let plainSecret = "<Secret><PlainValue>MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=\n  </PlainValue></Secret>"
  static let counter = "<Counter><PlainValue>0</PlainValue></Counter>"
  static let response = #"<ResponseFormat Length="8" Encoding="DECIMAL"/>"#

  /// A key package; `names` stand before the parameters, `afterData` behind the data.
  static func key(
    algorithm: String = "hotp", id: String = "12345678", device: String = "", names: String = "",
    parameters: String = response, data: String = plainSecret + counter, afterData: String = ""
  ) -> String {
    """
    <KeyPackage><DeviceInfo><Manufacturer>Manufacturer</Manufacturer><SerialNo>987654321</SerialNo>\(device)</DeviceInfo>
    <Key Id="\(id)" Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:\(algorithm)"><Issuer>Issuer</Issuer>\(names)
    <AlgorithmParameters>\(parameters)</AlgorithmParameters><Data>\(data)</Data>\(afterData)</Key></KeyPackage>
    """
  }

  /// An encrypted value named `name`.
  static func encrypted(
    _ name: String = "Secret", cipher: String = "http://www.w3.org/2001/04/xmlenc#aes128-cbc", value: String,
    mac: String?
  ) -> String {
    """
    <\(name)><EncryptedValue>\(cipherText(cipher, value))</EncryptedValue>\
    \(mac.map { "<ValueMAC>\($0)\n</ValueMAC>" } ?? "")</\(name)>
    """
  }

  static func cipherText(_ cipher: String, _ value: String) -> String {
    """
    <xenc:EncryptionMethod Algorithm="\(cipher)"/><xenc:CipherData><xenc:CipherValue>
      \(value)
    </xenc:CipherValue></xenc:CipherData>
    """
  }

  static let preSharedKey = "<EncryptionKey><ds:KeyName>Pre-shared-key</ds:KeyName></EncryptionKey>"

  static func macMethod(
    _ algorithm: String = "http://www.w3.org/2000/09/xmldsig#hmac-sha1",
    cipher: String = "http://www.w3.org/2001/04/xmlenc#aes128-cbc", key: String?
  ) -> String {
    let key = key.map { "<MACKey>\(cipherText(cipher, $0))</MACKey>" } ?? ""
    return "<MACMethod Algorithm=\"\(algorithm)\">\(key)</MACMethod>"
  }

  static func passphraseKey(
    salt: String = "Ej7/PEpyEpw=", iterations: String = "1000", keyLength: String = "16", function: String = "<PRF/>",
    algorithm: String = "http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#pbkdf2"
  ) -> String {
    """
    <EncryptionKey><xenc11:DerivedKey><xenc11:KeyDerivationMethod Algorithm="\(algorithm)"><pkcs5:PBKDF2-params>
    <Salt xmlns=""><Specified>\(salt)</Specified></Salt><IterationCount xmlns="">\(iterations)</IterationCount>
    <KeyLength xmlns="">\(keyLength)</KeyLength>\(function)</pkcs5:PBKDF2-params></xenc11:KeyDerivationMethod>
    <xenc:ReferenceList><xenc:DataReference URI="#ED"/></xenc:ReferenceList>
    <xenc11:MasterKeyName>My Password 1</xenc11:MasterKeyName></xenc11:DerivedKey></EncryptionKey>
    """
  }

  /// Figure 6: the secret under AES-128-CBC and a pre-shared key.
  static let figure6 = ContainerText(
    protection: preSharedKey + macMethod(key: "ESIzRFVmd4iZABEiM0RVZgKn6WjLaTC1sbeBMSvIhRejN9vJa2BOlSaMrR7I5wSX"),
    packages: [
      key(
        data: encrypted(
          value: "AAECAwQFBgcICQoLDA0OD+cIHItlB3Wra1DUpxVvOx2lef1VmNPCMl8jwZqIUqGv", mac: "Su+NvtQfmvfJzF6bmQiJqoLRExc="
        )
          + counter)
    ])
  static let figure6Key: [UInt8] = [
    0x12, 0x34, 0x56, 0x78, 0x90, 0x12, 0x34, 0x56, 0x78, 0x90, 0x12, 0x34, 0x56, 0x78, 0x90, 0x12,
  ]

  /// Figure 7: the secret under a key from the passphrase `qwerty`.
  static let figure7 = ContainerText(
    protection: passphraseKey() + macMethod(key: "2GTTnLwM3I4e5IO5FkufoOEiOhNj91fhKRQBtBJYluUDsPOLTfUvoU2dStyOwYZx"),
    packages: [
      key(
        data: encrypted(
          value: "oTvo+S22nsmS2Z/RtcoF8Hfh+jzMe0RkiafpoDpnoZTjPYZu6V+A4aEn032yCr4f", mac: "LP6xMvjtypbfT9PdkJhBZ+D6O4w="
        ))
    ])
}
