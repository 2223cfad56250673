/** What the schemes of recovery that are not the standard's do otherwise, by the cases that notice. Everything else they pass. */

const COMBINED = ['combined/3mtu+5-at-4090-anywhere-last-lost', 'combined/mtu+1-at-0-anywhere-last-lost'];
const GAPS = ['gap/nak', 'gap/nothing-executed', 'gap/one-nak', 'gap/second-nak', 'wrap/gap'];
const REST_OF_READ = ['requester/read-rest', 'requester/read-rest-middle'];

/** The schemes. */
export const NONSTANDARD_SCHEMES = [
  'go-back-0',
  'selective-repeat',
  'irn',
  'rack',
  'multipath',
  'melo',
  'dcp',
] as const;

/** Cases that fail or differ, by the scheme of the target. */
export const SCHEME_DEVIATIONS: Readonly<Record<(typeof NONSTANDARD_SCHEMES)[number], readonly string[]>> = {
  // A gap is answered by a NAK at the first packet of the message, although its other packets are there, and a READ begins anew.
  'go-back-0': [...COMBINED, 'read/again-elsewhere', 'reorder/write', ...REST_OF_READ],
  // What is behind a gap is executed, and each hole gets a NAK of its own; of a READ just what is missing is fetched.
  'selective-repeat': [...COMBINED, ...GAPS, ...REST_OF_READ],
  // The same, and its timer is short where little is in flight.
  irn: [...COMBINED, ...GAPS, ...REST_OF_READ, 'requester/timer'],
  rack: [...COMBINED, ...GAPS, ...REST_OF_READ],
  multipath: [...COMBINED, ...GAPS, ...REST_OF_READ],
  melo: [...COMBINED, ...GAPS, ...REST_OF_READ],
  // Gaps are answered by nothing: what is lost waits for the timeout, and what is behind it is executed.
  dcp: [
    ...COMBINED,
    'combined/1-at-4090-anywhere-last-lost',
    'combined/mtu-1-at-0-before-wrap-last-lost',
    'combined/mtu-at-1-before-wrap-last-lost',
    ...GAPS,
    'reorder/write',
    ...REST_OF_READ,
  ],
};
