/** Whether the QPNs and start PSNs of a host can be predicted (rule 101): the steps from one connection to the next. */

import type { RuleReporter } from './rule-reporter.js';

/** Connections of a host before it is evaluated, and again after as many. */
const CONNECTIONS = 64;
const GUESSABLE = 0.25;
const HOSTS_MAX = 1024;
const NUMBERS = 0x1000000;

interface Host {
  lastQpn: number;
  lastPsn: number;
  count: number;
  qpnSteps: Map<number, number>;
  psnSteps: Map<number, number>;
}

export class Predictability {
  readonly #hosts = new Map<string, Host>();

  take(
    { source: address, interfaceId }: { readonly source: string; readonly interfaceId: number },
    { qpn, startPsn }: { readonly qpn: number; readonly startPsn: number },
    reporter: RuleReporter,
  ): void {
    const key = `${interfaceId} ${address}`;
    const host = this.#hosts.get(key);
    if (host === undefined) {
      if (this.#hosts.size >= HOSTS_MAX) return;
      this.#hosts.set(key, { lastQpn: qpn, lastPsn: startPsn, count: 1, qpnSteps: new Map(), psnSteps: new Map() });
      return;
    }
    count(host.qpnSteps, qpn - host.lastQpn);
    count(host.psnSteps, startPsn - host.lastPsn);
    host.lastQpn = qpn;
    host.lastPsn = startPsn;
    if (++host.count % CONNECTIONS !== 0) return;
    this.#check('QPN', host.qpnSteps, address, reporter);
    this.#check('start PSN', host.psnSteps, address, reporter);
    host.qpnSteps.clear();
    host.psnSteps.clear();
  }

  #check(what: string, steps: ReadonlyMap<number, number>, address: string, reporter: RuleReporter): void {
    const [step, times] = [...steps].reduce((most, one) => (one[1] > most[1] ? one : most));
    if (times < GUESSABLE * (CONNECTIONS - 1)) {
      reporter.pass(101);
      return;
    }
    const text = `the ${what} of ${address} grows by ${step} in ${times} of the last ${CONNECTIONS} connections; expected random numbers`;
    reporter.violation(101, text);
  }
}

function count(steps: Map<number, number>, difference: number): void {
  const step = (difference + NUMBERS) % NUMBERS;
  steps.set(step, (steps.get(step) ?? 0) + 1);
}
