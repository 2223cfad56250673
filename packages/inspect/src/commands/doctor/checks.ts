import { formatNs } from 'rocev2/internal/core';
import { ruleOf } from '../../audit/catalogue.js';
import type { ArrivedClasses, CapturedArrivals } from './arrivals.js';
import { type Check, check } from './check.js';
import type { PathReport } from './path-probe.js';
import type { ServiceReport } from './service-test.js';
import type { PortAnswer } from './udp-probe.js';

const LOSS_FAILED = 0.01;
const START_RPING = 'start rping -s -P -S 8192 there, or rocev2 rping -s';

export function checkPort(answer: PortAnswer): Check {
  if (answer === 'refused') {
    return check(
      'port',
      'failed',
      'ICMP reports that no program has UDP port 4791 there',
      'start an RDMA program there; Linux: rdma link add rxe0 type rxe netdev IF',
    );
  }
  if (answer === 'unreachable') {
    return check('port', 'failed', 'ICMP says that the host cannot be reached', 'look at addresses and routes');
  }
  return check('port', 'ok', 'no ICMP error: UDP port 4791 is open, or a firewall drops without a word');
}

export function checkManagement({ sent, answered, rttNs }: PathReport): Check {
  if (rttNs !== null) {
    return check(
      'cm',
      'ok',
      `RDMA CM answers in ${formatNs(rttNs.median)} (least ${formatNs(rttNs.min)}, 99 % ${formatNs(rttNs.p99)}, most ${formatNs(rttNs.max)})`,
    );
  }
  return check(
    'cm',
    'failed',
    `RDMA CM answered none of ${sent} requests (${answered} answers)`,
    'is a firewall in the way, or has the program that holds the port been stopped? Linux: modprobe rdma_cm; programs with their own TCP exchange (ib_write_bw) have no CM',
  );
}

export function checkLoss({ sent, answered, duplicates }: PathReport): Check {
  if (answered === 0) return check('loss', 'not tested', 'nothing was answered');
  const lost = sent - answered;
  const copies = duplicates > 0 ? `; ${duplicates} answers came twice` : '';
  const text = `${lost} of ${sent} round trips lost${copies}`;
  if (lost === 0) return check('loss', duplicates > 0 ? 'warning' : 'ok', text);
  return check(
    'loss',
    lost / sent >= LOSS_FAILED ? 'failed' : 'warning',
    `${text} (${((100 * lost) / sent).toFixed(1)} %)`,
    'RoCE is made for networks that lose next to nothing: look for full buffers and for PFC that is not configured',
  );
}

export function checkOrder({ answered, reordered }: PathReport): Check {
  if (answered < 2) return check('order', 'not tested', 'fewer than two answers');
  if (reordered === 0) return check('order', 'ok', `${answered} answers came in the order of their requests`);
  return check(
    'order',
    'warning',
    `${reordered} of ${answered} answers came late, behind later ones`,
    'does a switch or bond spray packets of one flow over several links?',
  );
}

export function checkService({ refusal, pings, failure, counters }: ServiceReport): Check {
  if (refusal !== null) return check('service', 'failed', refusal, START_RPING);
  const right = pings.filter(({ outcome }) => outcome === 'right').length;
  const wrong = pings.filter(({ outcome }) => outcome === 'wrong').length;
  if (wrong > 0) return check('service', 'failed', `${wrong} pings came back with wrong text`);
  if (right === 0) return check('service', 'failed', `no ping came back: ${failure}`, 'is the service rping -s?');
  const again = (counters.duplicate_request ?? 0) + (counters.tx_retransmitted ?? 0);
  const text = `${right} pings over a connection came back unchanged`;
  if (again === 0) return check('service', 'ok', text);
  return check('service', 'warning', `${text}; ${again} packets were sent again`);
}

export function checkMtu({ refusal, pathMtu, pings, failure, counters }: ServiceReport): Check {
  if (refusal !== null || pings.length === 0) return check('mtu', 'not tested', 'there was no connection');
  const lost = pings.find(({ outcome }) => outcome === 'lost');
  const passed = Math.max(0, ...pings.filter(({ outcome }) => outcome === 'right').map(({ sizeBytes }) => sizeBytes));
  if (lost === undefined) {
    if (passed >= pathMtu) return check('mtu', 'ok', `packets of ${pathMtu} bytes pass in both directions`);
    return check(
      'mtu',
      'cannot tell',
      `packets of ${passed} bytes pass; the service takes no larger ones`,
      START_RPING,
    );
  }
  const size = Math.min(lost.sizeBytes, pathMtu);
  if (passed >= size) return check('mtu', 'cannot tell', `a ping of ${lost.sizeBytes} bytes was lost: ${failure}`);
  const direction = lostTowards(counters, pings.length);
  return check(
    'mtu',
    'failed',
    `packets of ${passed} bytes pass, packets of ${size} do not, ${direction} (${failure})`,
    `set the path MTU to ${passed >= 256 ? passed : 256} or less, or the MTU of all links to ${size + 96} or more`,
  );
}

function lostTowards(counters: ServiceReport['counters'], pings: number): string {
  if ((counters.duplicate_request ?? 0) > 0) return 'towards the peer, which asked for the data again';
  if ((counters.rx_read_requests ?? 0) >= pings) {
    return 'towards this side: the peer has read the data, and its responses do not arrive';
  }
  return 'in one of the directions';
}

export function checkDscp(asked: number, { management, connections }: CapturedArrivals, isVisible: boolean): Check {
  if (!isVisible) {
    return check(
      'dscp',
      'cannot tell',
      'the port does not show the DSCP of received packets',
      'install koffi (rocev2 info)',
    );
  }
  const best = total(connections) > 0 ? connections : management;
  if (total(best) === 0) return check('dscp', 'not tested', 'nothing arrived');
  const seen = Object.keys(best.dscps).map(Number);
  if (seen.length === 1 && seen[0] === asked) {
    return check('dscp', 'ok', `asked for with DSCP ${asked}, answered with DSCP ${asked}: it survives both ways`);
  }
  return check(
    'dscp',
    'cannot tell',
    `asked for with DSCP ${asked}, answered with DSCP ${seen.join(', ')}: the peer chooses its own DSCP, or the network changes it`,
  );
}

export function checkEcn({ management, connections, marksSent, cnps }: CapturedArrivals, isVisible: boolean): Check {
  if (!isVisible) {
    return check(
      'ecn',
      'cannot tell',
      'the port does not show the ECN bits of received packets',
      'install koffi (rocev2 info)',
    );
  }
  const packets = total(management) + total(connections);
  if (packets === 0) return check('ecn', 'not tested', 'nothing arrived');
  if (marksSent > 0 && cnps === 0) {
    return check(
      'ecn',
      'warning',
      `${marksSent} packets were sent marked (CE), and no CNP came: the network clears ECN towards the peer, or the peer does not notify; so congestion control cannot work`,
      "capture there: tcpdump 'udp port 4791 and ip[1] & 3 = 3' shows the packets that arrive marked; Soft-RoCE never notifies",
    );
  }
  const there =
    marksSent > 0 ? `${marksSent} packets were sent marked, and ${cnps} CNPs came: marks reach the peer; ` : '';
  const [none, ect1, ect0, marked] = management.ecns.map((count, i) => count + connections.ecns[i]);
  if (marked > 0) {
    return check(
      'ecn',
      'warning',
      `${there}${marked} of ${packets} packets arrived marked: there is congestion on the way`,
    );
  }
  if (ect0 + ect1 > 0)
    return check('ecn', 'ok', `${there}${ect0 + ect1} of ${packets} packets arrived ECN-capable, none marked`);
  return check(
    'ecn',
    'cannot tell',
    `${there}${none} packets arrived, none ECN-capable: the peer sends without ECN, or the network clears it`,
    'does the peer have congestion control on? If so, a switch on the return path clears the bits',
  );
}

export function checkIcrc({ audit }: CapturedArrivals, isAnswered: boolean): Check {
  const icrc = audit.rules.find(({ rule }) => rule === 11);
  if (icrc !== undefined && icrc.violations > 0) {
    return check(
      'icrc',
      'failed',
      `${icrc.violations} packets had a wrong ICRC`,
      'something on the way changes addresses, ports or data: NAT, a tunnel, broken memory',
    );
  }
  if (!isAnswered) return check('icrc', 'cannot tell', 'nothing came back: perhaps the peer drops our packets');
  return check('icrc', 'ok', 'right in all packets that came back; the peer answers, so it takes ours');
}

export function checkRules({ audit }: CapturedArrivals): Check {
  const broken = audit.rules.filter(({ rule, verdict }) => rule !== 11 && verdict === 'violation');
  const judged = audit.rules.filter(({ verdict }) => verdict === 'pass').length;
  if (broken.length === 0) return check('rules', 'ok', `${judged} rules of RoCEv2 occurred, and all were kept`);
  const isMust = broken.some(({ rule }) => ruleOf(rule)?.severity === 'must');
  const list = broken.map(({ rule }) => `${rule} (${ruleOf(rule)?.title})`).join(', ');
  return check('rules', isMust ? 'failed' : 'warning', `broken: ${list}`, 'rocev2 audit FILE says where; see --pcap');
}

function total({ ecns }: ArrivedClasses): number {
  return ecns.reduce((sum, count) => sum + count, 0);
}
