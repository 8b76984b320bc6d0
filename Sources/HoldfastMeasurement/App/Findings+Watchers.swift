extension Findings {
  /// Where Frida's server listens unless told otherwise.
  private static let agentPort: UInt16 = 27042

  /// Looks at threads, mapped files and listening sockets.
  init(watchersIn map: MemoryMap, files: HostFiles) throws(MeasurementError) {
    for thread in try ThreadStatus.all(files) {
      if thread.isTraced { note(.tracer) }
      if Self.isAgentThread(thread.name[...]) { note(.agentThread, details: thread.name) }
    }
    for mapping in map.mappings where Self.isAgentFile(mapping.name[...]) { note(.agentMapping) }
    if try ListeningSockets.contain(port: Self.agentPort, files) { note(.agentListener) }
  }

  /// Names that Frida gives its threads. `gmain` and `gdbus` are left out: every GLib program has them.
  private static func isAgentThread(_ name: ArraySlice<UInt8>) -> Bool {
    name.equals("gum-js-loop") || name.equals("linjector") || name.contains("frida")
  }

  private static func isAgentFile(_ name: ArraySlice<UInt8>) -> Bool {
    name.contains("frida-agent") || name.contains("frida-gadget") || name.contains("libgadget")
      || name.contains("linjector")
  }
}
