import Testing

import HoldfastMeasurement

@Suite struct FindingsTests {
  @Test func `findings are a sorted array of name, details and count, none twice`() {
    var findings = Findings()
    #expect(findings.isEmpty && findings.encoded.isEmpty)
    findings.note(.anonymousCode, details: [0x61], count: 2)
    findings.note(.tracer)
    findings.note(.tracer)
    #expect(findings.kinds == [.anonymousCode, .tracer])
    let tracer = [0x83, 0x66] + Array("tracer".utf8) + [0x40, 1]
    let code = [0x83, 0x6e] + Array("anonymous code".utf8) + [0x41, 0x61, 2]
    #expect(findings.encoded == [0x82] + tracer + code)
  }
}
