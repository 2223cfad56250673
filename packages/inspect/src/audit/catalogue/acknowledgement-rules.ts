/** Rules 33 to 60: PSNs, acknowledgements, timers. */

import { active, information, judged, judgedAndActive, measured, must, type RuleSection, should } from '../rule.js';

export const ACKNOWLEDGEMENT_RULES: RuleSection = {
  title: 'PSN, ACK, MSN',
  rules: [
    must(
      33,
      'PSNs of new requests are consecutive; a READ takes one for each response packet.',
      '9.7.2',
      judged('a PSN inside a READ; a skipped PSN where the IP identification shows that no packet is missing'),
    ),
    must(
      34,
      'PSNs wrap at 2^24.',
      '9.7.2',
      active('the other rules hold across the wrap; a start PSN near it has to be asked for'),
    ),
    must(35, 'At most 2^23 PSNs are outstanding.', '9.7.2', judged('PSNs since the last acknowledged one')),
    must(
      36,
      'Acknowledgements do not move backwards, and acknowledge only what was sent.',
      'Lumina gbn_check, 9.7.5',
      judgedAndActive('each PSN against the newest before it, and against requests that come later'),
    ),
    information(
      37,
      'One acknowledgement covers all before it.',
      '9.7.5.1.2',
      measured('the PSNs that each acknowledgement adds'),
    ),
    must(
      38,
      'A request that asks for an acknowledgement gets one.',
      '9.7.5.1.2',
      active(
        'a request that is lost after the capture, or that meets an ended queue pair, gets no answer either; no capture shows that',
      ),
    ),
    information(
      39,
      'A requester that never asks still makes progress.',
      '9.7.6',
      measured('messages whose last packet does not ask; the PSNs per acknowledgement show its progress'),
    ),
    must(
      40,
      'The MSN counts completed messages.',
      '9.7.7',
      judgedAndActive('each ACK against the messages up to its PSN, as long as no packet of the direction is missing'),
    ),
    should(
      41,
      'A requester honours credits.',
      '9.7.7.2',
      judgedAndActive(
        'SENDs against the credits of the newest ACK, where a responder gives them; a violation needs --at, since an ACK may be missing',
      ),
    ),
    must(42, 'A duplicate is acknowledged and not executed again.', 'C9-105', active('memory has to be compared')),
    must(
      43,
      'The ACK of a duplicate names the latest PSN.',
      'C9-105, rxe duplicate_request',
      active('an ACK of a duplicate looks like a late one'),
    ),
    must(
      44,
      'A gap is answered by NAK 0x60 with the expected PSN.',
      'Lumina, class B',
      judgedAndActive(
        'an answer that acknowledges PSNs which were never sent, as the IP identification shows; a PSN that the network lost looks like one that arrived',
      ),
    ),
    must(
      45,
      'A gap gets one NAK until the expected PSN arrives.',
      'Lumina, rxe sent_psn_nak',
      judgedAndActive('a second NAK for a PSN, with requests between them, before the PSN was sent again'),
    ),
    must(46, 'Packets after a gap are not executed.', '9.7.5', active('memory after the gap has to be compared')),
    must(
      47,
      'A NAK acknowledges all before it, and the requester resumes there.',
      '9.7.5.2, rxe check_ack',
      judgedAndActive(
        'the PSN of the NAK is left out, and three packets after it are retransmitted; a violation needs IP identifications without a hole, or --at',
      ),
    ),
    information(
      48,
      'Go-back-N, go-back-0 or selective repeat.',
      'Lumina, SIGCOMM’16',
      measured('the packets after the PSN of the NAK'),
    ),
    should(
      49,
      'Packets after a gap cause no second restart.',
      'Lumina',
      judged('the PSN of a NAK is sent again, a second NAK follows, and so does the PSN; needs --at'),
    ),
    must(50, 'A lost retransmission is recovered by the timer.', 'Lumina', active('the second copy has to be lost')),
    must(
      51,
      'The timer does not fire before the transport timeout.',
      'C9-140',
      judgedAndActive(
        'retransmissions without NAK, where the CM REQ names the timeout and no READ is outstanding; a violation needs IP identifications that exclude a late copy, or --at',
      ),
    ),
  ],
};

export const TIMER_RULES: RuleSection = {
  title: 'Timers and retries',
  rules: [
    should(
      52,
      'The timer fires between T and 4 T, T = 4.096 us * 2^timeout.',
      'C9-140, 9.9.2.1',
      judgedAndActive(
        'retransmissions without NAK against the last sign of life, where the CM REQ names the timeout; a violation needs --at; the lower bound is rule 51',
      ),
    ),
    must(
      53,
      'Timeout 0 means never.',
      'C9-140',
      active(
        'the responder has to fall silent; a REQ that names no timeout does not say that the queue pair has none: programs set it later',
      ),
    ),
    must(
      54,
      'A request is sent at most 1 + retry_cnt times.',
      '9.9.2.1',
      judgedAndActive(
        'copies a transport timeout apart without any answer between them, where the CM REQ names timeout and retry count; a violation needs --at',
      ),
    ),
    must(55, 'Progress refills the retry counter.', 'rxe reset_retry_counters', active('loss at chosen places')),
    should(
      56,
      'Only an ACK that makes progress restarts the timer.',
      '9.7.6',
      active('duplicate ACKs have to be sent'),
    ),
    must(
      57,
      'An RNR NAK carries the responder’s timer.',
      '9.7.5.2.8',
      active('a capture does not show how the queue pair was set up'),
    ),
    must(
      58,
      'After an RNR NAK the requester waits at least the coded time.',
      '9.7.5.2.8',
      judgedAndActive(
        'the time to the next copy of the request, less 5 % and 100 us; a violation needs the transport timeout and IP identifications that exclude a late copy, or --at',
      ),
    ),
    must(
      59,
      'rnr_retry 7 retries indefinitely, n retries n times.',
      '9.9.2.1',
      judgedAndActive(
        'copies of a request after RNR NAKs without progress, where RDMA CM has told n; a violation needs --at; `rocev2 conform` tests 7',
      ),
    ),
    information(
      60,
      'The answer to packets after an RNR NAK: silence, or NAK 0x60.',
      'docs/how-to/talk-to-linux.md',
      measured('the answers after an RNR NAK'),
    ),
  ],
};
