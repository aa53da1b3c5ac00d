/** Single answers in a closed loop: the service and its peers in turns. */
import { type Bench, inTurns, type Pace } from '../bench.js';
import { newTally } from '../ledger.js';
import { usualTraffic } from '../load/traffic.js';
import type { Sample } from '../measure.js';
import type { PeerName } from '../peers.js';
import type { Measurement } from '../results.js';
import { ledgerOf, measurementOf, peerContestant, serviceContestant } from '../scenario.js';

/** The rounds of each target, and what is told of them, the ledger included. */
interface Compared {
  readonly samples: ReadonlyMap<string, Sample[]>;
  readonly measurements: readonly Measurement[];
}

export async function besidePeers(
  bench: Bench,
  scenario: string,
  pace: Pace,
  peers: readonly PeerName[],
): Promise<Compared> {
  const service = await bench.service();
  const others = await Promise.all(peers.map((peer) => bench.peer(peer)));
  const tally = newTally();
  const contestants = [
    ...others.map((peer) => peerContestant(peer, scenario, usualTraffic)),
    serviceContestant(service, scenario, usualTraffic, tally),
  ];
  const samples = await inTurns(bench, contestants, { scenario, pace });
  const ledger = await ledgerOf(service, scenario, usualTraffic, tally);
  const measurements = [...samples].map(([target, list]) =>
    measurementOf(target, list, target === service.name ? { ledger } : {}),
  );
  return { samples, measurements };
}
