// @ts-check
/** N flows without end into one port, for HPCC's ns-3 simulator and for `rocev2 sim run --like hpcc-ns3`. */

/**
 * @typedef {object} Ns3Set
 * @property {string} name
 * @property {'none' | 'dcqcn' | 'timely' | 'dctcp' | 'hpcc'} control
 * @property {number} gbps
 * @property {number} flows
 * @property {number} milliseconds Virtual time; values are of its second half.
 * @property {number} bufferMib Memory of the switch.
 * @property {string} command
 */

const FLOWS = [2, 10, 16];

/** @param {Ns3Set['control']} control @param {number} gbps @param {number} milliseconds @returns {Ns3Set[]} */
function sets(control, gbps, milliseconds = 100) {
  return FLOWS.map((flows) => ({
    name: `${control}-${gbps}g-n${flows}`,
    control,
    gbps,
    flows,
    milliseconds,
    // As run.py: in proportion to the rate, in whole MiB.
    bufferMib: Math.floor((16 * gbps) / 50),
    command: `rocev2 sim run timely-n${flows} --like hpcc-ns3 --set switch={} --set nic.cc=${control} --set topology.rate=${gbps}Gbps --set duration=${milliseconds}ms --set warmup=${milliseconds / 2}ms --set payload=virtual --set assertions=[]`,
  }));
}

export const NS3_SETS = [
  ...sets('dcqcn', 10),
  ...sets('dcqcn', 25),
  ...sets('dcqcn', 40),
  ...sets('dcqcn', 100),
  ...sets('timely', 25, 200),
  ...sets('hpcc', 25),
  ...sets('hpcc', 100).slice(0, 2),
];
