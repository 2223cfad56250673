/** Rules 1 to 22: the form of a packet, from the IP header to the BTH. */

import { active, judged, judgedAndActive, must, type RuleSection, should } from '../rule.js';

export const FORMAT_RULES: RuleSection = {
  title: 'Format',
  rules: [
    must(
      1,
      'An IPv4 header has no options, has DF set, and is not a fragment.',
      'CA17-3, 7, 8, 10',
      judged('every IPv4 packet; a later fragment has no UDP header and is not seen'),
    ),
    must(
      2,
      'The IPv4 total length ends with the ICRC.',
      'CA17-6',
      judged('both lengths of every packet; where they differ, the ICRC says which one is wrong'),
    ),
    must(
      3,
      'The IPv6 payload length is that of the UDP datagram, and the next header is UDP.',
      'CA17-15, 16',
      judged('as rule 2; extension headers before UDP are a violation'),
    ),
    must(4, 'Both IPv4 and IPv6 work.', 'CA17-1', active('a capture shows only what was used')),
    should(
      5,
      'A sender gives requests, acknowledgements and READ responses of a queue pair one DSCP.',
      'CA17-4, 13',
      judged('the first DSCP to each queue pair against the others; a switch on the path can also change it'),
    ),
    must(
      6,
      'ECN is 00 without congestion management, and 01 or 10 with it.',
      'CA17-5, 14',
      judged('packets with data to one queue pair are all ECN-capable, or none is'),
    ),
    must(
      7,
      'The UDP destination port is 4791.',
      'CA17-20',
      judged('a datagram to another port, between known peers, whose ICRC is right'),
    ),
    must(8, 'The UDP length ends with the ICRC.', 'CA17-21', judged('as rule 2')),
    should(
      9,
      'The UDP checksum is 0 or right.',
      'A17.3.2.4',
      judgedAndActive(
        'every checksum that is not 0; the half sum that checksum offload leaves in a capture is cannot tell',
      ),
    ),
    should(
      10,
      'A queue pair sends from one UDP source port.',
      'A17.3.2.1',
      judged('the first source port to each queue pair against the others; CNPs are excepted'),
    ),
    must(11, 'The ICRC is right.', 'CA17-22', judged('every packet that was captured whole')),
    must(12, 'A packet with a wrong ICRC is dropped in silence.', 'CA17-24', active('needs a peer that sends one')),
    must(
      13,
      'Fields that the ICRC does not cover may change on the way.',
      'CA17-22',
      active('what the receiver made of a changed field is not in the packets'),
    ),
    must(14, 'Malformed packets are dropped in silence.', 'CA17-24, 27', active('needs a peer that sends them')),
    must(15, 'A packet to QP 0 is dropped.', 'CA17-33', active('needs a peer that sends one')),
    must(
      16,
      'The transport version is 0, and other versions are dropped.',
      '9.6.1.1',
      judgedAndActive('what is sent; whether another version is dropped needs a peer that sends it'),
    ),
    must(
      17,
      'The pad count makes the payload a multiple of four.',
      '9.2, rxe check_rkey',
      judgedAndActive('pad count against the lengths of every packet'),
    ),
    should(
      18,
      'Both values of MigReq are accepted at full rate.',
      'Lumina; librxe-dev#6',
      active('the rate with the other value has to be tried'),
    ),
    should(19, 'Reserved bits of the BTH are 0.', '9.2', judged('bytes 4 and 8 of the BTH')),
    must(20, 'A packet with a wrong P_Key is dropped.', 'C9-42, C9-43', active('needs a peer that sends one')),
    must(
      21,
      'A packet from another address or transport than the connection’s is dropped.',
      '9.6.1.2.3, CA17-41',
      active('needs a peer that sends one'),
    ),
    should(
      22,
      'An unknown opcode is dropped, or refused by a NAK.',
      '9.7.4',
      active('needs a peer that sends one; the sender’s side is rule 30'),
    ),
  ],
};
