import HoldfastAuthenticator
import HoldfastCore
import HoldfastOpenSSL
import Testing

struct PlainContainerTests {
  private let secret = Array("12345678901234567890".utf8)

  private func one(_ package: String) throws -> Credential {
    try #require(try read(ContainerText(packages: [package]).text, .pskc).first)
  }

  private func reason(_ package: String) -> ImportFault? {
    fault(ContainerText(packages: [package]).text, .pskc)
  }

  @Test("the smallest container, of RFC 6030's Figure 2, is read with the defaults")
  func figure2() throws {
    let text = """
      <?xml version="1.0" encoding="UTF-8"?>
      <KeyContainer Version="1.0" Id="exampleID1" xmlns="urn:ietf:params:xml:ns:keyprov:pskc"><KeyPackage>
      <Key Id="12345678" Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp"><Issuer>Issuer-A</Issuer><Data><Secret>
      <PlainValue>MTIzNA==
      </PlainValue></Secret></Data></Key></KeyPackage></KeyContainer>
      """
    let credential = try #require(try read(text, .pskc).first)
    #expect(credential.issuer == "Issuer-A" && credential.user == "12345678" && credential.nextCounter == 0)
    #expect(credential.method == .hotp(.sha1, .six) && credential.secretArray == Array("1234".utf8))
  }

  @Test("a user's distinguished name of RFC 6030's Figure 3 is too long, unless another is given")
  func figure3() throws {
    let names = "<UserId>UID=jsmith,DC=example-bank,DC=net</UserId>"
    let text = ContainerText(packages: [ContainerText.key(afterData: names)]).text
    #expect(fault(text, .pskc) == .userTooLong)
    let credential = try #require(try read(text, .pskc, ImportParameters(user: "jsmith")).first)
    #expect(credential.user == "jsmith" && credential.method == .hotp(.sha1, .eight))
    #expect(credential.secretArray == secret)
  }

  @Test("a key without its secret, of RFC 6030's Figure 4, is not read")
  func figure4() {
    let package = ContainerText.key(
      data: ContainerText.counter, afterData: "<KeyProfileId>keyProfile1</KeyProfileId>")
    #expect(reason(package) == .unsupportedFeature)
  }

  @Test("a key with a PIN, of RFC 6030's Figure 5, is read only if nobody minds; the PIN is no key")
  func figure5() throws {
    let policy = """
      <Policy><PINPolicy MinLength="4" MaxLength="4" PINKeyId="123456781" PINEncoding="DECIMAL" PINUsageMode="Local"/>
      <KeyUsage>OTP</KeyUsage></Policy>
      """
    let pin = ContainerText.key(
      algorithm: "pin", id: "123456781", parameters: #"<ResponseFormat Length="4" Encoding="DECIMAL"/>"#,
      data: "<Secret><PlainValue>MTIzNA==</PlainValue></Secret>")
    let text = ContainerText(packages: [ContainerText.key(afterData: policy), pin]).text
    #expect(fault(text, .pskc) == .policyNotEnforced)
    var parameters = ImportParameters()
    parameters.acceptsUnenforcedPolicy = true
    #expect(try read(text, .pskc, parameters).map(\.user) == ["12345678"])
    #expect(reason(pin) == .noAccount)
  }

  @Test("policies that limit a key are refused, those that name its use are not")
  func policies() {
    for policy in [
      "<ExpiryDate>2006-05-31T00:00:00Z</ExpiryDate>", "<NumberOfTransactions>3</NumberOfTransactions>", "<New/>",
    ] {
      #expect(reason(ContainerText.key(afterData: "<Policy>\(policy)</Policy>")) == .policyNotEnforced)
    }
    #expect(reason(ContainerText.key(afterData: "<Policy><KeyUsage>OTP</KeyUsage></Policy>")) == nil)
    #expect(
      reason(ContainerText.key(afterData: "<Policy><KeyUsage>Encrypt</KeyUsage></Policy>")) == .unsupportedFeature)
    #expect(reason(ContainerText.key(device: "<DeviceBinding>IMEI</DeviceBinding>")) == .policyNotEnforced)
  }

  @Test("a signed container, as RFC 6030's Figure 9, is read only if nobody minds that nobody checked")
  func figure9() throws {
    let text = ContainerText(afterPackages: "<ds:Signature><ds:SignedInfo/></ds:Signature>").text
    #expect(fault(text, .pskc) == .signatureNotChecked)
    var parameters = ImportParameters()
    parameters.acceptsUncheckedSignature = true
    #expect(try read(text, .pskc, parameters).count == 1)
  }

  @Test("several keys, as RFC 6030's Figure 10, are read in their order, with a prefix for the namespace too")
  func figure10() throws {
    let text = ContainerText(packages: (1...4).map { ContainerText.key(id: String($0)) }).text
    #expect(try read(text, .pskc).map(\.user) == ["1", "2", "3", "4"])
    let prefixed = """
      <p:KeyContainer Version="1.0" xmlns:p="urn:ietf:params:xml:ns:keyprov:pskc"><p:KeyPackage><p:Key Id="a"
      Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp"><p:Data><p:Secret><p:PlainValue>MTIzNA==</p:PlainValue></p:Secret>
      </p:Data></p:Key></p:KeyPackage></p:KeyContainer>
      """
    #expect(try read(prefixed, .pskc).map(\.user) == ["a"])
  }

  @Test("a package of another namespace is passed over")
  func foreignPackage() throws {
    let text = ContainerText(packages: [#"<KeyPackage xmlns="urn:example"/>"#, ContainerText.key()]).text
    #expect(try read(text, .pskc).map(\.user) == ["12345678"])
  }

  @Test("a time-based key has its hash and period")
  func totp() throws {
    let time = """
      <Time><PlainValue>0</PlainValue></Time><TimeInterval><PlainValue>60</PlainValue></TimeInterval>
      <TimeDrift><PlainValue>4</PlainValue></TimeDrift>
      """
    let package = ContainerText.key(
      algorithm: "totp", parameters: "<Suite>HMAC-SHA256</Suite>" + ContainerText.response,
      data: ContainerText.plainSecret + time)
    #expect(try one(package).method == .totp(.sha256, .eight, periodSeconds: 60))
    let bare = ContainerText.key(algorithm: "totp", parameters: "", data: ContainerText.plainSecret)
    #expect(try one(bare).method == .totp(.sha1, .six, periodSeconds: 30))
    let later = "<Time><PlainValue>1</PlainValue></Time>"
    #expect(
      reason(ContainerText.key(algorithm: "totp", data: ContainerText.plainSecret + later)) == .unsupportedFeature)
    for period in ["0", "86401"] {
      let wrong = "<TimeInterval><PlainValue>\(period)</PlainValue></TimeInterval>"
      #expect(reason(ContainerText.key(algorithm: "totp", data: ContainerText.plainSecret + wrong)) == .invalidPeriod)
    }
  }

  @Test("a challenge-response key has its suite, and its counter where the suite has one")
  func ocra() throws {
    let counter = "<Counter><PlainValue>9</PlainValue></Counter>"
    let parameters = """
      <Suite>OCRA-1:HOTP-SHA512-8:C-QN08</Suite><ChallengeFormat Min="8" Max="8" Encoding="DECIMAL"/>\(ContainerText.response)
      """
    let credential = try one(
      ContainerText.key(algorithm: "ocra", parameters: parameters, data: ContainerText.plainSecret + counter))
    #expect(credential.method == OCRASuite("OCRA-1:HOTP-SHA512-8:C-QN08").map { .ocra($0) })
    #expect(credential.nextCounter == 9)
    let withoutCounter = "<Suite>OCRA-1:HOTP-SHA1-6:QA06</Suite>"
    let other = try one(
      ContainerText.key(algorithm: "ocra", parameters: withoutCounter, data: ContainerText.plainSecret + counter))
    #expect(other.nextCounter == 0)
    #expect(reason(ContainerText.key(algorithm: "ocra")) == .unsupportedAlgorithm)
    let badSuite = "<Suite>OCRA-1:HOTP-SHA1-6:QA06-S</Suite>"
    #expect(reason(ContainerText.key(algorithm: "ocra", parameters: badSuite)) == .unsupportedAlgorithm)
    #expect(
      reason(ContainerText.key(algorithm: "ocra", parameters: withoutCounter + ContainerText.response))
        == .invalidDigits)
  }

  @Test("the key's user goes before its friendly name, and that before its identifier")
  func names() throws {
    let both = "<FriendlyName>My token</FriendlyName><UserId>alice</UserId>"
    #expect(try one(ContainerText.key(afterData: both)).user == "alice")
    #expect(try one(ContainerText.key(afterData: "<FriendlyName> My token\n</FriendlyName>")).user == "My token")
    #expect(reason(ContainerText.key(afterData: "<UserId></UserId>")) == .invalidName)
    #expect(reason(ContainerText.key(afterData: "<UserId>a&#x85;b</UserId>")) == .invalidName)
    #expect(reason(ContainerText.key(afterData: "<UserId>a</UserId><UserId>b</UserId>")) == .malformed)
    #expect(reason(ContainerText.key(id: "")) == .invalidName)
    #expect(reason(ContainerText.key(names: "<Issuer>Two</Issuer>")) == .malformed)
  }

  @Test("what Holdfast cannot make codes of is refused for just that")
  func refused() {
    func format(_ text: String) -> String { ContainerText.key(parameters: "<ResponseFormat \(text)/>") }
    #expect(reason(format(#"Length="3" Encoding="DECIMAL""#)) == .invalidDigits)
    #expect(reason(format(#"Length="11" Encoding="DECIMAL""#)) == .invalidDigits)
    #expect(reason(format(#"Length="08" Encoding="DECIMAL""#)) == .invalidDigits)
    #expect(reason(format(#"Encoding="DECIMAL""#)) == .invalidDigits)
    #expect(reason(format(#"Length="8" Encoding="HEXADECIMAL""#)) == .unsupportedFeature)
    #expect(reason(format(#"Length="8""#)) == .unsupportedFeature)
    #expect(reason(format(#"Length="8" Encoding="DECIMAL" CheckDigits="true""#)) == .unsupportedFeature)
    #expect(reason(format(#"Length="8" Encoding="DECIMAL" CheckDigits="false""#)) == nil)
    #expect(reason(ContainerText.key(parameters: #"<ChallengeFormat CheckDigits="true"/>"#)) == .unsupportedFeature)
    #expect(reason(ContainerText.key(parameters: #"<ChallengeFormat CheckDigits="0"/>"#)) == nil)
    #expect(reason(ContainerText.key(parameters: "<Suite>HMAC-MD5</Suite>")) == .unsupportedAlgorithm)
    #expect(reason(ContainerText.key(algorithm: "securid")) == .unsupportedAlgorithm)
    #expect(reason(ContainerText.key(algorithm: "HOTP")) == .unsupportedAlgorithm)
    func data(_ text: String) -> String { ContainerText.key(data: text) }
    for counter in ["-1", "", "1x", "9007199254740992", "18446744073709551616", "AAAAAAAAAAA="] {
      let element = "<Counter><PlainValue>\(counter)</PlainValue></Counter>"
      #expect(reason(data(ContainerText.plainSecret + element)) == .invalidCounter)
    }
    #expect(reason(data("<Secret><PlainValue></PlainValue></Secret>")) == .invalidSecret)
    #expect(reason(data("<Secret><PlainValue>MTIzNA</PlainValue></Secret>")) == .malformed)
    #expect(reason(data("<Secret><PlainValue>MTIzNB==</PlainValue></Secret>")) == .malformed)
    #expect(reason(data("<Secret><PlainValue>!!!!</PlainValue></Secret>")) == .malformed)
    #expect(reason(data("<Secret/>")) == .malformed)
    #expect(reason(data(ContainerText.plainSecret + ContainerText.plainSecret)) == .malformed)
    let long = String(repeating: "AAAA", count: 43)
    #expect(reason(data("<Secret><PlainValue>\(long)</PlainValue></Secret>")) == .secretTooLong)
    #expect(fault(ContainerText(version: "1.1").text, .pskc) == .unsupportedFeature)
    #expect(fault(ContainerText(packages: ["<KeyPackage/>"]).text, .pskc) == .malformed)
    #expect(fault(ContainerText(packages: []).text, .pskc) == .noAccount)
  }
}
