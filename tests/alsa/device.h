/* An opened device of a test card, and what the files of the PCM plugin share. */
#ifndef DEVICE_H
#define DEVICE_H

#include "card_state.h"

#include <alsa/asoundlib.h>
#include <alsa/pcm_external.h>

_Static_assert(sizeof(long) == 8, "positions must not wrap");

struct device {
  snd_pcm_ioplug_t io;
  snd_pcm_ioplug_callback_t callbacks;
  struct card *card;
  struct stream *stream;
  int64_t plugged; /* the card's count when we opened: another one means that we are dead */
  char proc[600];  /* pcm0c/sub0 in the tree that looks like /proc/asound */
  int lock;        /* on proc/status: held while we are open */
  int poller, timer, watch;

  int running;
  int64_t clock_ns; /* when `clock` was last moved on */
  double clock;     /* frames that the converter has moved */
  int64_t hardware; /* what we tell alsa-lib of `clock`: whole steps, and nothing when frozen */
  int64_t application;
  int64_t earlier; /* frames handed over before the last prepare */
  int64_t avail_min, stop_threshold;
  int stalled;
  int64_t frozen_ns; /* when the next interrupt of a frozen card comes */
  int cut;           /* this read or write has moved all that it may */

  const uint8_t *source;
  int64_t source_frames, source_bytes;
  double missed; /* the part of a frame that a stall has lost */
  double base;   /* position in the source of frame 0 */
  int speaker;
  int64_t silent_ns; /* playback: since when an underrun has silenced it; 0: it has not */
};

static inline int is_capture(const struct device *device)
{
  return device->io.stream == SND_PCM_STREAM_CAPTURE;
}

static inline int is_gone(const struct device *device)
{
  return device->card->index < 0 || device->card->plugged != device->plugged;
}

static inline double frames_per_ns(const struct device *device)
{
  return device->io.rate * 1e-9 * device->card->speed * (1.0 + device->card->drift_ppm * 1e-6);
}

/* Source frames for each frame of the stream. */
static inline double source_step(const struct device *device)
{
  return (double)device->card->source_rate / device->io.rate;
}

/* Frames that wait for the application: to be read, or free to be written. */
static inline int64_t available(const struct device *device)
{
  int64_t ahead = device->hardware - device->application;

  return is_capture(device) ? ahead : ahead + (int64_t)device->io.buffer_size;
}

/* faults.c */
struct fault *due(struct device *device, int where);
void strike(struct fault *fault);
int error_of(struct device *device, int where);
int64_t before_fault(const struct device *device);

/* report.c */
void tell(const struct device *device, const char *name, const char *format, ...);
void tell_status(const struct device *device, const char *state);

/* sound.c */
void forget_source(struct device *device);
void load_source(struct device *device);
void cut_recording(struct device *device);
void capture(struct device *device, const snd_pcm_channel_area_t *areas, snd_pcm_uframes_t offset,
             snd_pcm_uframes_t size);
int play(struct device *device, const snd_pcm_channel_area_t *areas, snd_pcm_uframes_t offset,
         snd_pcm_uframes_t size);

/* clock.c */
int is_ready(struct device *device, int64_t now);
void schedule(struct device *device);
void follow_source(struct device *device);
void remember(struct device *device);
void advance(struct device *device);

/* offers.c */
int offer_everything(struct device *device);

#endif
