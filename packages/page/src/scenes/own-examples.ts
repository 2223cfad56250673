/** The code that the scene of own schemes begins with. */

export const RATE_CONTROL_EXAMPLE = `import { RateControl, registerRateControl } from 'rocev2';

// Additive increase, multiplicative decrease: a notification cuts the rate.
class Aimd extends RateControl {
  usesEcn = true; // packets can be marked, and marks are notified
  #p;
  #rateBps = 40e9;
  #cutNs = 0;

  constructor(parameters) {
    super();
    this.#p = parameters;
  }

  rateBps(now) {
    const milliseconds = (now - this.#cutNs) / 1e6;
    return Math.min(40e9, this.#rateBps + this.#p.increaseBps * milliseconds);
  }

  onCnp(now) {
    this.#rateBps = Math.max(100e6, this.rateBps(now) * (1 - this.#p.decrease));
    this.#cutNs = now;
    return true; // the rate has changed
  }
}

registerRateControl({
  name: 'aimd',
  summary: 'additive increase, multiplicative decrease',
  parameters: {
    increaseBps: { default: 5e9, min: 1e6, max: 1e12 }, // per millisecond
    decrease: { default: 0.2, min: 0, max: 1 },
  },
  create: (parameters) => new Aimd(parameters),
});
`;

export const RECOVERY_EXAMPLE = `import { registerRecovery, SelectiveRepeatReceiver, SelectiveRepeatSender } from 'rocev2';

// Selective repeat with a limit of packets in flight, as IRN has it.
class CappedSender extends SelectiveRepeatSender {
  constructor({ inFlightPackets }) {
    super();
    this.inFlightMax = inFlightPackets;
  }
}

registerRecovery({
  name: 'capped-repeat',
  summary: 'selective repeat with a limit of packets in flight',
  usesSack: true,
  parameters: {
    inFlightPackets: { default: 16, min: 1, max: 1024, whole: true },
  },
  sender: (parameters) => new CappedSender(parameters),
  receiver: () => new SelectiveRepeatReceiver(),
});
`;
