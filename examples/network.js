/**
 * A network, a traffic pattern and a rate control of one's own in virtual time.
 *
 *   node examples/network.js
 *
 * Eight hosts stand on a ring of four switches. Each sends to the host across the ring, at first at 10 Gb/s, and obeys a rate control that halves its rate when a
 * round trip takes more than 40 us. Then one link of the ring fails, and traffic goes the other way around.
 */

import { simulate } from '@rocev2/lab/sim';
import { RateControl, registerRateControl } from 'rocev2/congestion';

/** Additive increase, multiplicative decrease, once a round trip. */
class Halving extends RateControl {
  rttSampleBytes = 0; // one packet in a round trip
  #parameters;
  #rate;

  constructor(parameters) {
    super();
    this.#parameters = parameters;
    this.#rate = parameters.lineRateBps;
  }

  rateBps() {
    return this.#rate;
  }

  onRttSample(rttNs) {
    const { lineRateBps, minimumRateBps, limitRttNs, stepBps } = this.#parameters;
    const wanted = rttNs > limitRttNs ? this.#rate / 2 : this.#rate + stepBps;
    this.#rate = Math.min(lineRateBps, Math.max(minimumRateBps, wanted));
  }
}

registerRateControl({
  name: 'halving',
  summary: 'halves its rate when round trips take long',
  parameters: {
    lineRateBps: { default: 10e9, min: 1e6, max: 1e12 },
    minimumRateBps: { default: 100e6, min: 1e6, max: 1e12 },
    limitRttNs: { default: 40_000, min: 1000, max: 1e9 },
    stepBps: { default: 50e6, min: 1, max: 1e12 },
  },
  create: (parameters) => new Halving(parameters),
});

const SWITCHES = 4;
const numbers = (count) => Array.from({ length: count }, (_, i) => i);

/** Two hosts on each switch, and every switch beside the next one. */
const ring = {
  kind: 'links',
  rate: '10Gbps',
  delay: '1us',
  hosts: numbers(2 * SWITCHES).map((i) => `h${i}`),
  switches: numbers(SWITCHES).map((i) => `s${i}`),
  links: [
    ...numbers(2 * SWITCHES).map((i) => ({ a: `h${i}`, b: `s${Math.floor(i / 2)}` })),
    ...numbers(SWITCHES).map((i) => ({ a: `s${i}`, b: `s${(i + 1) % SWITCHES}` })),
  ],
};

/** Every host to the one across the ring, each 10 us after the one before. */
const across = {
  kind: 'list',
  flows: ring.hosts.map((from, i) => ({
    from,
    to: ring.hosts[(i + SWITCHES) % ring.hosts.length],
    bytes: '2MB',
    start: `${10 * i}us`,
  })),
};

async function run(title, happenings) {
  const { summary, slowdowns } = await simulate({
    name: 'ring',
    duration: '100ms',
    topology: ring,
    nic: { cc: 'halving', recovery: 'selective-repeat', timeout: 11 },
    switch: { queuePackets: 4096, bufferPackets: 16_384 },
    flows: [across],
    happenings,
  });
  const worst = Math.max(...slowdowns.map(({ p99 }) => p99));
  const again = summary.retransmittedPackets > 0 ? 'some packets sent again' : 'no packet sent again';
  console.log(`${title}: ${summary.completions.count} flows done, ${again}, slowdown ${worst.toFixed(1)}`);
}

await run('whole ring', []);
await run('broken ring', [{ do: 'fail', at: '200us', what: 's1-s2', reroute: '100us' }]);
