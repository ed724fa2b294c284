"""The places of the frame, through which each call passes its arguments and results."""

from __future__ import annotations

from typing import Final

from .host import frame, layout

RELEASE_AT: Final = frame + layout["frame_release"]
RELEASE_WORD: Final = RELEASE_AT >> 3
CALL_MODE: Final = frame + 6
N_RELEASE: Final = frame + 7
FIRST_RELEASE: Final = (frame + 16) >> 3
DATA: Final = frame + layout["frame_data"]
DATA_BYTES: Final = layout["data_bytes"]
FRAME_END: Final = DATA + DATA_BYTES
KEYWORDS: Final = (frame + layout["frame_keywords"]) >> 2
RESULT: Final = (frame + layout["frame_result"]) >> 3
RESULT_TAG: Final = (frame + layout["frame_result_tag"]) >> 2
MESSAGE: Final = (frame + layout["frame_message"]) >> 2
WORK: Final = (frame + layout["frame_work"]) >> 2
DUAL_LEVELS: Final = (frame + layout["frame_dual_levels"]) >> 2
MAX_RELEASE: Final = layout["max_release"]
N_WARNINGS: Final = (frame + layout["frame_n_warnings"]) >> 2
N_DROPPED: Final = (frame + layout["frame_n_dropped"]) >> 2
DROPPED: Final = (frame + layout["frame_dropped"]) >> 2
HOST_IN: Final = (frame + layout["frame_host_in"]) >> 3
HOST_OUT: Final = (frame + layout["frame_host_out"]) >> 3
HOST_KIND: Final = (frame + layout["frame_host_kind"]) >> 2
HOST_ID, HOST_N, HOST_FIRST = HOST_KIND + 1, HOST_KIND + 2, HOST_KIND + 3
HOST_CAP: Final = (frame + layout["frame_host_cap"]) >> 2
HOST_N_OUT: Final = (frame + layout["frame_host_n_out"]) >> 2
MODES: Final = (frame + layout["frame_modes"]) >> 2
THREAD: Final = (frame + layout["frame_thread"]) >> 2
