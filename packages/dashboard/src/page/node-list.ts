import { formatBytes, formatCount, formatNs } from '@rocev2/command/plot';
import type { ClusterSample } from '../messages/attached.js';
import type { AttachedNodeState, ClusterNodeDetail } from '../messages/cluster-messages.js';
import { element, svgElement } from './dom.js';

const COLUMNS = [
  'node',
  'state',
  'over time',
  'heard',
  'domain',
  'stored',
  'free',
  'replicas',
  'fragments',
  'mended',
  'at',
];
const STRIP_HEIGHT = 10;

interface Stretch {
  readonly state: AttachedNodeState | undefined;
  readonly from: number;
  readonly to: number;
}

export class NodeList {
  readonly #body = element('tbody');
  readonly element: HTMLElement;

  constructor() {
    const head = element('tr', {}, ...COLUMNS.map((column) => element('th', { scope: 'col' }, column)));
    const table = element('table', { 'aria-label': 'nodes' }, element('thead', {}, head), this.#body);
    this.element = element('div', { class: 'table nodes' }, table);
  }

  show(nodes: readonly ClusterNodeDetail[], samples: readonly ClusterSample[]): void {
    this.#body.replaceChildren(...nodes.map((node) => line(node, samples)));
  }
}

function line(node: ClusterNodeDetail, samples: readonly ClusterSample[]): HTMLElement {
  const words = node.readOnly === null ? node.state : `${node.state}: ${node.readOnly}`;
  const cells = [
    String(node.node),
    element('span', { class: `state ${node.state}` }, words),
    stripOf(node.node, samples),
    `${formatNs(node.silentMs * 1e6)} ago`,
    node.domain,
    formatBytes(node.usedBytes),
    formatBytes(node.freeBytes),
    formatCount(node.replicas),
    formatCount(node.fragments),
    `${formatCount(node.repaired)} of ${formatCount(node.damaged)}`,
    node.address,
  ];
  return element(
    'tr',
    { 'data-node': node.node, 'data-state': node.state },
    ...cells.map((cell) => element('td', {}, cell)),
  );
}

function stripOf(node: number, samples: readonly ClusterSample[]): SVGElement {
  const stretches = stretchesOf(node, samples);
  const width = Math.max(1, samples.length);
  const label = stretches.map(({ state }) => state ?? 'not known').join(', then ');
  return svgElement(
    'svg',
    {
      class: 'node-strip',
      viewBox: `0 0 ${width} ${STRIP_HEIGHT}`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': label,
    },
    ...stretches.map(({ state = 'unknown', from, to }) =>
      svgElement('rect', { class: state, x: from, y: 0, width: to - from, height: STRIP_HEIGHT }),
    ),
  );
}

function stretchesOf(node: number, samples: readonly ClusterSample[]): Stretch[] {
  const stretches: Stretch[] = [];
  for (const [i, { reading }] of samples.entries()) {
    const state = reading?.nodes.find((one) => one.node === node)?.state;
    const last = stretches.at(-1);
    if (last?.state === state && last !== undefined) stretches[stretches.length - 1] = { ...last, to: i + 1 };
    else stretches.push({ state, from: i, to: i + 1 });
  }
  return stretches;
}
