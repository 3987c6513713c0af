/* A sound card for tests, as a plugin of alsa-lib: the test that feeds it is its clock.
 *
 * The microphone is a FIFO: what the test writes there is what the card has recorded, so that a
 * reader waits exactly as long as the test wants it to. The speaker is a plain file: what is
 * played is appended to it at once, and never runs short. All is S16_LE. When the FIFO has been
 * deleted, the card is unplugged.
 *
 *   pcm.default { type testcard  microphone "/a/fifo"  speaker "/a/file"  rate 16000  channels 1 }
 */
#include <alsa/asoundlib.h>
#include <alsa/pcm_external.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct card {
  snd_pcm_ioplug_t io;
  char *microphone;
  int fd;
  snd_pcm_uframes_t moved; /* frames that went through since prepare() */
};

static size_t frame_bytes(const struct card *card) { return 2 * card->io.channels; }

static int unplugged(struct card *card) {
  if (access(card->microphone, F_OK) == 0)
    return 0;
  snd_pcm_ioplug_set_state(&card->io, SND_PCM_STATE_DISCONNECTED);
  return 1;
}

static int on_start(snd_pcm_ioplug_t *io) { return unplugged(io->private_data) ? -ENODEV : 0; }

static int on_stop(snd_pcm_ioplug_t *io) {
  (void)io;
  return 0;
}

static int on_prepare(snd_pcm_ioplug_t *io) {
  struct card *card = io->private_data;
  card->moved = 0;
  return unplugged(card) ? -ENODEV : 0;
}

static snd_pcm_sframes_t on_pointer(snd_pcm_ioplug_t *io) {
  struct card *card = io->private_data;
  snd_pcm_uframes_t position;
  int waiting = 0;

  if (unplugged(card)) /* an error here would be taken for an overrun */
    return card->moved % io->buffer_size;
  if (io->stream == SND_PCM_STREAM_CAPTURE) {
    if (ioctl(card->fd, FIONREAD, &waiting) < 0)
      return -errno;
    position = waiting / frame_bytes(card);
    /* One less than the buffer holds: a full turn would look like none. What is beyond stays in
     * the FIFO, so that a slow reader loses nothing. */
    if (position >= io->buffer_size)
      position = io->buffer_size - 1;
    position += card->moved;
  } else {
    position = card->moved ? card->moved - 1 : 0; /* one frame is always left: no underrun */
  }
  return position % io->buffer_size;
}

static snd_pcm_sframes_t on_transfer(snd_pcm_ioplug_t *io, const snd_pcm_channel_area_t *areas,
                                     snd_pcm_uframes_t offset, snd_pcm_uframes_t frames) {
  struct card *card = io->private_data;
  char *at = (char *)areas->addr + areas->first / 8 + offset * frame_bytes(card);
  ssize_t bytes = frames * frame_bytes(card);

  if (unplugged(card))
    return -ENODEV;
  bytes = io->stream == SND_PCM_STREAM_CAPTURE ? read(card->fd, at, bytes)
                                               : write(card->fd, at, bytes);
  if (bytes < 0)
    return -errno;
  card->moved += bytes / frame_bytes(card);
  return bytes / frame_bytes(card);
}

static int on_close(snd_pcm_ioplug_t *io) {
  struct card *card = io->private_data;
  close(card->fd);
  free(card->microphone);
  free(card);
  return 0;
}

static const snd_pcm_ioplug_callback_t callbacks = {
    .start = on_start,
    .stop = on_stop,
    .prepare = on_prepare,
    .pointer = on_pointer,
    .transfer = on_transfer,
    .close = on_close,
};

static int limit(struct card *card, long rate, long channels) {
  const unsigned access = SND_PCM_ACCESS_RW_INTERLEAVED, format = SND_PCM_FORMAT_S16_LE;
  snd_pcm_ioplug_t *io = &card->io;
  int error;

  if ((error = snd_pcm_ioplug_set_param_list(io, SND_PCM_IOPLUG_HW_ACCESS, 1, &access)) < 0 ||
      (error = snd_pcm_ioplug_set_param_list(io, SND_PCM_IOPLUG_HW_FORMAT, 1, &format)) < 0 ||
      (error = snd_pcm_ioplug_set_param_minmax(io, SND_PCM_IOPLUG_HW_RATE, rate, rate)) < 0 ||
      (error = snd_pcm_ioplug_set_param_minmax(io, SND_PCM_IOPLUG_HW_CHANNELS, channels,
                                               channels)) < 0 ||
      (error = snd_pcm_ioplug_set_param_minmax(io, SND_PCM_IOPLUG_HW_PERIOD_BYTES, 64,
                                               1 << 16)) < 0 ||
      (error = snd_pcm_ioplug_set_param_minmax(io, SND_PCM_IOPLUG_HW_PERIODS, 2, 64)) < 0)
    return error;
  return 0;
}

SND_PCM_PLUGIN_DEFINE_FUNC(testcard) {
  const char *microphone = NULL, *speaker = NULL, *id;
  long rate = 16000, channels = 1;
  snd_config_iterator_t at, next;
  struct card *card;
  int error;

  (void)root;
  snd_config_for_each(at, next, conf) {
    snd_config_t *entry = snd_config_iterator_entry(at);
    if (snd_config_get_id(entry, &id) < 0 || !strcmp(id, "type"))
      continue;
    if (!strcmp(id, "microphone"))
      snd_config_get_string(entry, &microphone);
    else if (!strcmp(id, "speaker"))
      snd_config_get_string(entry, &speaker);
    else if (!strcmp(id, "rate"))
      snd_config_get_integer(entry, &rate);
    else if (!strcmp(id, "channels"))
      snd_config_get_integer(entry, &channels);
    else
      return -EINVAL;
  }
  if (!microphone || !speaker)
    return -EINVAL;
  if (access(microphone, F_OK) < 0)
    return -ENODEV;
  card = calloc(1, sizeof *card);
  if (!card)
    return -ENOMEM;
  card->microphone = strdup(microphone);
  card->fd = stream == SND_PCM_STREAM_CAPTURE
                 ? open(microphone, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
                 : open(speaker, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  card->io.version = SND_PCM_IOPLUG_VERSION;
  card->io.name = "card for tests";
  card->io.callback = &callbacks;
  card->io.private_data = card;
  card->io.poll_fd = card->fd;
  card->io.poll_events = stream == SND_PCM_STREAM_CAPTURE ? POLLIN : POLLOUT;
  if (card->fd < 0) {
    error = -errno;
    free(card->microphone);
    free(card);
    return error;
  }
  if ((error = snd_pcm_ioplug_create(&card->io, name, stream, mode)) < 0) {
    on_close(&card->io);
    return error;
  }
  if ((error = limit(card, rate, channels)) < 0) {
    snd_pcm_ioplug_delete(&card->io);
    return error;
  }
  *pcmp = card->io.pcm;
  return 0;
}

SND_PCM_PLUGIN_SYMBOL(testcard);
