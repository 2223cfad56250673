/** Rules 83 to 111: congestion, connection management, datagrams, security, robustness. */

import { active, information, judged, judgedAndActive, measured, must, type RuleSection, should } from '../rule.js';

export const CONGESTION_RULES: RuleSection = {
  title: 'Congestion',
  rules: [
    must(
      83,
      'A marked packet brings a CNP, and no other packet does.',
      'CA17-44, Lumina',
      judgedAndActive(
        'a CNP needs a marked packet since the last one; a violation needs --at, since a mark may be set behind the capture',
      ),
    ),
    must(84, 'A CNP has its form: PSN 0, no flags, 16 zero bytes.', 'CA17-44, figure 6', judged('every CNP')),
    information(
      85,
      'The interval of CNPs and its scope.',
      'Lumina',
      measured('intervals by queue pair, pair of addresses and sender', true),
    ),
    should(
      86,
      'CNPs are not closer than configured.',
      'Lumina',
      measured('as rule 85; what was configured is not in the packets', true),
    ),
    information(87, 'A CNP together with a NAK.', 'Lumina', measured('CNPs within 20 us of a NAK')),
    must(
      88,
      'The rate falls after a CNP and recovers.',
      'CA17-45, 46',
      measured(
        'the rate of 16 packets after each CNP, and DCQCN fitted; an application may send less than it could',
        true,
      ),
    ),
    should(
      89,
      'CNPs have their own DSCP.',
      'CA17-4',
      measured('the DSCPs of CNPs; what was configured is not in the packets'),
    ),
    should(90, 'A CNP for an unknown queue pair is ignored.', 'robustness', active('a tester has to send it')),
  ],
};

export const CONNECTION_RULES: RuleSection = {
  title: 'Connection management',
  rules: [
    must(
      91,
      'CM messages have their layout.',
      'CA17-34',
      judgedAndActive('length, base version, class version and method of every CM message'),
    ),
    must(92, 'REJ reasons 13 and 19 are never sent.', 'CA17-35', judged('every REJ')),
    must(93, 'Lost REP, RTU and DREP are repeated.', '12.9', active('they have to be lost')),
    should(94, 'A REQ to nobody gets REJ 8 at once.', '12.6.7', active('a tester has to send it')),
    must(
      95,
      'Private data and READ limits arrive intact; 0 is allowed.',
      '12, rxe-dev#78',
      active('several sizes have to be tried'),
    ),
    must(96, 'Data before the RTU establish the connection.', '12.9.6', active('the RTU has to be withheld')),
    should(97, 'A stale connection is refused or reset.', '12.9', active('a peer has to be killed')),
  ],
};

export const DATAGRAM_RULES: RuleSection = {
  title: 'UD',
  rules: [
    must(98, 'A datagram with a wrong Q_Key is dropped.', '9.8', active('a tester has to send it')),
    must(99, 'A receive begins with 40 bytes of IP header.', 'A17.4.5.2', active('the receive buffer has to be read')),
    must(100, 'A datagram too long is dropped without a NAK.', '9.8', active('a tester has to send it')),
  ],
};

export const SECURITY_RULES: RuleSection = {
  title: 'Security',
  rules: [
    should(
      101,
      'Start PSNs, QPNs and R_Keys cannot be predicted.',
      'ReDMArk',
      judgedAndActive('QPNs and start PSNs of 64 connections that RDMA CM makes: one step is not common'),
    ),
    information(
      102,
      'A packet from off the path with the right numbers is taken.',
      'ReDMArk',
      active('it has to be forged'),
    ),
    information(103, 'One bad packet can end a connection.', 'ReDMArk', active('it has to be forged')),
    information(104, 'A key works on all connections of its domain.', 'ReDMArk', active('it has to be tried')),
    should(105, 'Half-open connections do not exhaust memory.', 'NeVerMore', active('10,000 REQs have to be sent')),
  ],
};

export const ROBUSTNESS_RULES: RuleSection = {
  title: 'Robustness',
  rules: [
    must(
      106,
      'Malformed packets leave other queue pairs untouched.',
      'TLS-Anvil',
      active('100,000 of them have to be sent'),
    ),
    information(
      107,
      'Reordering costs retransmissions, never data.',
      'DCP’25, IRN',
      active('memory has to be compared'),
    ),
    must(108, 'Duplication of every packet executes nothing twice.', 'C9-105', active('memory has to be compared')),
    should(
      109,
      'Loss on one queue pair does not slow another.',
      'Lumina, Husky',
      active('two loads have to be compared'),
    ),
    should(110, 'Counters agree with the wire.', 'Lumina', active('the peer’s counters have to be given')),
    information(111, 'The share of an idle class is used.', 'Lumina', active('two classes have to be loaded')),
  ],
};
