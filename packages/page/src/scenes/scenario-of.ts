import type { Scenario } from '@rocev2/lab/internal/page';

type Flows = Extract<Scenario['flows'][number], { kind: 'flows' }>;

export const LINK_BPS = 40e9;

/** The NICs of hosts, unless a scene gives others. */
export const NIC: Scenario['nic'] = {
  mtu: 1024,
  recovery: 'go-back-n',
  inflight: 16_384,
  timeout: 8,
  retries: 7,
  dscp: 0,
  cc: { name: 'none' },
};

/** A scenario with the defaults of scenario files. Payload is virtual: the packets are the same. */
export function scenarioOf(
  fields: Pick<Scenario, 'name' | 'seed' | 'duration' | 'flows'> & Partial<Scenario>,
): Scenario {
  return {
    title: '',
    source: '',
    warmup: 0,
    sample: 100_000,
    jitter: 0,
    topology: { kind: 'pair', rate: LINK_BPS, delay: 500 },
    payload: 'virtual',
    queuePairs: 'at-start',
    nic: NIC,
    switch: {},
    pipelines: [],
    happenings: [],
    assertions: [],
    ...fields,
  };
}

/** WRITEs between hosts, which never end. */
export function flowsOf(fields: Pick<Flows, 'from' | 'to' | 'message'> & Partial<Flows>): Flows {
  return { kind: 'flows', op: 'write', start: 0, each: 1, stagger: 0, ...fields };
}
