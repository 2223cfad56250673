import { describeRecovery } from '../contracts/recovery-contract.js';

const from = (first: number, end: number) => Array.from({ length: end - first }, (_, i) => first + i);

describeRecovery({ name: 'go-back-n', report: 'ACKNOWLEDGE', resent: (lost, _start, sent) => from(lost, sent) });
describeRecovery({ name: 'go-back-0', report: 'ACKNOWLEDGE', resent: (_lost, start, sent) => from(start, sent) });
describeRecovery({ name: 'selective-repeat', report: 'SACK', resent: (lost) => [lost] });
