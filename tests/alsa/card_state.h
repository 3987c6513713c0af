/* The state of one test card: what it offers, what it is told to do, and what truly happened.
 *
 * One such structure lies in a small file that the plugins and the tests map into memory.
 * card.py reads this header, so that there is one description of the layout. It understands
 * `#define NAME number`, and in structures one field a line: `type name;` or `type name[NAME];`
 *
 * Who writes: "told" fields the tests, "true" fields the plugins.
 * A test that has changed a told field touches the file, which wakes whoever polls the card.
 */
#ifndef CARD_STATE_H
#define CARD_STATE_H

#include <stdint.h>

#define CARD_MAGIC 0x6f79657a
#define CHOICES 16
#define CHANNELS 16
#define FAULTS 8
#define CONTROLS 16
#define CONTROL_CHANNELS 8
#define ENUM_ITEMS 8
#define TLV_WORDS 16
#define WRITES 64

/* Where a fault strikes. */
#define FAULT_NONE 0
#define FAULT_OPEN 1
#define FAULT_PREPARE 2
#define FAULT_TRANSFER 3
#define FAULT_POLL 4
#define FAULT_XRUN 5
#define FAULT_SUSPEND 6
#define FAULT_UNPLUG 7
#define FAULT_STALL 8
#define FAULT_FREEZE 9

/* What a control does to the sound. */
#define ROLE_NONE 0
#define ROLE_CAPTURE_GAIN 1
#define ROLE_CAPTURE_SWITCH 2
#define ROLE_PLAYBACK_GAIN 3
#define ROLE_PLAYBACK_SWITCH 4

/* The top byte of a sample in S24_LE. */
#define PADDING_SIGN 0
#define PADDING_ZERO 1
#define PADDING_JUNK 2

struct choice {
  int32_t is_range; /* 1: from values[0] to values[1] */
  int32_t count;
  int32_t values[CHOICES];
};

struct fault {
  int32_t where;    /* FAULT_NONE: the slot is free. The tests write it last. */
  int32_t error;    /* errno, positive */
  int64_t at_frame; /* -1: at once; else when exactly so many frames were handed over */
  int64_t times;    /* strikes that are left; 0: without end */
  int64_t lasts_ns; /* 0: until it is cleared */
  int64_t since_ns; /* true: when it first struck */
};

struct stream {
  /* told: what it offers */
  int32_t present;
  int32_t can_pause;
  struct choice formats;
  struct choice rates;
  struct choice channels;
  struct choice period_frames;
  struct choice buffer_frames;
  struct choice periods;
  /* told: how it behaves */
  int64_t pointer_step;   /* the position moves by so many frames at a time; 0: by one */
  int64_t wake_offset;    /* poll wakes so many frames after (before) a period is there */
  int64_t transfer_limit; /* frames that one read or write moves at most; 0: all */
  int32_t s24_padding;    /* PADDING_* */
  int32_t reserved;
  struct fault faults[FAULTS];
  /* true: what was granted */
  int32_t format;
  int32_t rate;
  int32_t channel_count;
  int32_t period;
  int32_t buffer;
  int32_t owner; /* thread that holds it; 0: nobody */
  /* true: what happened, since the card was made */
  int64_t opens_tried;
  int64_t opens;
  int64_t closes;
  int64_t prepares;
  int64_t starts;
  int64_t transfers;
  int64_t polls;
  int64_t xruns;
  int64_t suspends;
  int64_t errors;          /* faults of the kind transfer, poll, prepare, open that struck */
  int64_t frames;          /* handed to the application, or taken from it */
  int64_t frames_lost;     /* capture: never handed over; playback: silence after an underrun */
  int64_t frames_unplayed; /* taken from the application, but dropped before they sounded */
  int64_t clock_frames;    /* that the converter has moved */
  int64_t started_ns;      /* CLOCK_MONOTONIC of the last start */
};

struct control {
  char name[44]; /* as the driver names it: "Mic Capture Volume" */
  int32_t index;
  int32_t type; /* SND_CTL_ELEM_TYPE_* */
  int32_t role; /* ROLE_* */
  int32_t channels;
  int32_t minimum;
  int32_t maximum;
  int32_t step;
  int32_t gain_minimum_cdb; /* what it truly does at the minimum, in hundredths of a decibel */
  int32_t gain_step_cdb;    /* and for each step of one */
  int32_t tlv_count;        /* what it says that it does; 0: nothing */
  int32_t item_count;
  uint32_t tlv[TLV_WORDS];
  char items[ENUM_ITEMS][16];
  int32_t values[CONTROL_CHANNELS];
  int64_t revision; /* grows at every change, by whomever */
  int64_t writes;   /* true: writes by applications, those included that change nothing */
};

struct write {
  int64_t when_ns;
  int32_t thread;
  int32_t control;
  int32_t values[CONTROL_CHANNELS];
};

struct card {
  uint32_t magic;
  uint32_t size; /* of this structure: both sides must have read the same header */
  int32_t index; /* the number that the card has now; -1: it is not there */
  int32_t reserved;
  int64_t plugged; /* grows each time that it is plugged in: older handles are dead */
  char id[16];
  char name[32];
  char longname[80];
  char driver[16];
  /* told: the clock of both streams */
  double speed;
  double drift_ppm;
  /* told: what the microphone hears */
  int64_t source_serial; /* grows when another source was put on */
  char source_path[256];
  int32_t source_format;
  int32_t source_rate;
  int32_t source_channels;
  int32_t source_loops;
  int32_t goes_on; /* 1: the room goes on while nobody records, and what it says is lost */
  int32_t map_count;
  int32_t channel_map[CHANNELS]; /* source channel of each channel; -1: dead */
  /* told: folder for what is played */
  char speaker_path[256];
  /* true: where in the source we are, in frames of the source */
  int64_t source_seen;
  double source_next;
  double room_position;
  int64_t room_ns;
  struct stream streams[2]; /* as snd_pcm_stream_t counts: playback, capture */
  int32_t control_count;
  int32_t reserved_too;
  struct control controls[CONTROLS];
  int64_t write_count;
  struct write writes[WRITES]; /* the last ones, at write_count modulo WRITES */
};

/* card.c: what the two plugins share */
struct card *card_open(const char *root, const char *wanted, char *folder, int folder_size,
                       int *error);
void card_close(struct card *card);
int card_watch(const char *folder, uint32_t events);
int64_t card_now_ns(void);

#endif
