import Testing

import HoldfastTransport

struct DiagnosisTests {
  private static let everything: AdapterSettings = [
    .powered, .connectable, .discoverable, .bondable, .secureSimplePairing, .classic, .lowEnergy,
  ]

  private static func adapter(
    _ number: UInt16 = 0, without missing: AdapterSettings = [], block: RadioBlock? = nil
  ) -> Adapter {
    Adapter(
      number: number, address: .any, name: "", supported: everything, settings: everything.subtracting(missing),
      block: block)
  }

  private static func host(
    kernel: Bool = true, l2cap: Bool = true, rfcomm: Bool = true, adapters: [Adapter] = [adapter()],
    isAdministrator: Bool = true, server: HostFacts.DiscoveryServer = .ready
  ) -> HostFacts {
    HostFacts(
      hasKernelSupport: kernel, hasL2CAP: l2cap, hasRFCOMM: rfcomm, adapters: adapters,
      isAdministrator: isAdministrator, discoveryServer: server)
  }

  /// The findings that are not as they should be.
  private static func faults(_ diagnosis: Diagnosis) -> [Diagnostic] {
    diagnosis.diagnostics.filter { $0.state != .ok }
  }

  @Test func `nothing is amiss where everything is there`() {
    let diagnosis = Diagnosis(Self.host(), for: nil, nil)
    #expect(Self.faults(diagnosis).isEmpty && diagnosis.state == .ok && diagnosis.adapter == 0)
    #expect(diagnosis.diagnostics.count == 13)
  }

  @Test func `without a kernel that has Bluetooth nothing else is looked at`() {
    let diagnosis = Diagnosis(Self.host(kernel: false), for: nil, nil)
    #expect(diagnosis.diagnostics == [Diagnostic(.kernel, .missing)] && diagnosis.state == .missing)
  }

  @Test(
    arguments: [
      (host(l2cap: false), Diagnostic(.l2cap, .missing)), (host(rfcomm: false), Diagnostic(.rfcomm, .missing)),
      (host(adapters: []), Diagnostic(.adapter, .missing)),
      (host(adapters: [adapter(block: .soft)]), Diagnostic(.radio(.soft), .missing)),
      (host(adapters: [adapter(block: .hard)]), Diagnostic(.radio(.hard), .missing)),
      (host(adapters: [adapter(without: .powered)]), Diagnostic(.power, .missing)),
    ] as [(HostFacts, Diagnostic)])
  func `what nothing works without is missing`(host: HostFacts, finding: Diagnostic) {
    let diagnosis = Diagnosis(host, for: nil, nil)
    #expect(Self.faults(diagnosis) == [finding] && diagnosis.state == .missing)
  }

  @Test(
    arguments: [
      (host(adapters: [adapter(without: .lowEnergy)]), Diagnostic(.lowEnergy, .note)),
      (host(adapters: [adapter(without: .connectable)]), Diagnostic(.connectable, .note)),
      (host(adapters: [adapter(without: .discoverable)]), Diagnostic(.discoverable, .note)),
      (host(adapters: [adapter(without: .secureSimplePairing)]), Diagnostic(.secureSimplePairing, .note)),
      (host(adapters: [adapter(without: .bondable)]), Diagnostic(.bondable, .note)),
      (host(isAdministrator: false), Diagnostic(.administration, .note)),
      (host(server: .absent), Diagnostic(.discoveryServer(.absent), .note)),
      (host(server: .forbidden), Diagnostic(.discoveryServer(.forbidden), .note)),
    ] as [(HostFacts, Diagnostic)])
  func `what only a part needs is a note`(host: HostFacts, finding: Diagnostic) {
    let diagnosis = Diagnosis(host, for: nil, nil)
    #expect(Self.faults(diagnosis) == [finding] && diagnosis.state == .ok)
  }

  @Test func `an endpoint is told what its transport needs, and no more`() throws {
    let host = Self.host(rfcomm: false, adapters: [Self.adapter(without: [.lowEnergy, .connectable])])
    func faults(_ text: String) throws -> [Diagnostic] {
      Self.faults(Diagnosis(host, for: try Endpoint(parsing: text), nil))
    }
    #expect(try faults("l2cap:00:1A:7D:DA:71:13,psm=0x1001") == [Diagnostic(.connectable, .note)])
    #expect(
      try faults("rfcomm:00:1A:7D:DA:71:13") == [Diagnostic(.rfcomm, .missing), Diagnostic(.connectable, .note)])
    #expect(try faults("le:00:1A:7D:DA:71:13,psm=0x80") == [Diagnostic(.lowEnergy, .missing)])
  }

  @Test func `the adapter that the endpoint names is looked at, else the first that is powered`() throws {
    let host = Self.host(adapters: [Self.adapter(0, without: .powered), Self.adapter(1), Self.adapter(2)])
    func adapter(_ options: String) throws -> Diagnosis {
      Diagnosis(host, for: try Endpoint(parsing: "rfcomm:00:1A:7D:DA:71:13,channel=5\(options)"), nil)
    }
    #expect(try adapter("").adapter == 1)
    #expect(try adapter(",hci=hci2").adapter == 2)
    #expect(try Self.faults(adapter(",hci=hci0")) == [Diagnostic(.power, .missing)])
    #expect(try Self.faults(adapter(",hci=hci3")) == [Diagnostic(.adapter, .missing)])
  }

  @Test(
    arguments: [
      (.device(id: "00"), .ok), (.stranger, .missing), (.silent, .missing), (.failed(.refused), .missing),
      (.failed(.permissionDenied), .forbidden),
    ] as [(ConnectionAttempt, Diagnostic.State)])
  func `what came of connecting decides where the host lacks nothing`(
    attempt: ConnectionAttempt, state: Diagnostic.State
  ) throws {
    let diagnosis = Diagnosis(nil, for: try Endpoint(parsing: "unix:/run/a"), attempt)
    #expect(diagnosis.diagnostics == [Diagnostic(.connection(attempt), state)] && diagnosis.state == state)
  }
}
