/// Why a measurement could not be made from components.
public enum MeasurementFault: Error, Equatable {
  /// The components are not exactly those that the configuration names.
  case componentsDiffer
  /// The cryptographic library failed.
  case cryptography
}
