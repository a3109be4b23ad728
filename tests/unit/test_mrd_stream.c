/* SPDX-License-Identifier: MIT */
/* MRD streams: what is written is read, from files and pipes; cut, damaged and foreign input gets a sentence. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/input.h"
#include "io/mrd_stream_write.h"
#include "io/mrd_wire.h"

static char path[64];

static int make_path(void)
{
	int fd;

	strcpy(path, "/tmp/fornix-test-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return 1;
	close(fd);
	return 0;
}

static int remove_path(void)
{
	return unlink(path);
}

/* One of each kind that a stream may carry. */
static fx_msg *message(int i)
{
	static const unsigned kinds[] = {FX_ACQUISITION, FX_WAVEFORM, FX_IMAGE, FX_TEXT, FX_ACQUISITION};
	fx_msg *m;
	fx_array *filled = NULL;

	if (i >= 5)
		return NULL;
	if (kinds[i] == FX_TEXT)
		return fx_msg_new_text("hello");
	m = fx_msg_new(kinds[i]);
	if (kinds[i] == FX_ACQUISITION) {
		fx_acquisition *a = fx_msg_acquisition(m);
		int64_t samples = i == 0 ? 6 : 0;   /* the last one has no samples */

		a->head.number_of_samples = (uint16_t)samples;
		a->head.active_channels = 3;
		a->head.trajectory_dimensions = 2;
		a->head.scan_counter = 77;
		a->head.user_float[7] = 1.5f;
		CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF32, samples, 3, &a->data), FX_OK);
		CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F32, 2, samples, &a->traj), FX_OK);
		filled = a->data;
	} else if (kinds[i] == FX_WAVEFORM) {
		fx_waveform *w = fx_msg_waveform(m);

		w->head.number_of_samples = 4;
		w->head.channels = 2;
		w->head.waveform_id = 9;
		CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_U32, 4, 2, &w->data), FX_OK);
		filled = w->data;
	} else {
		fx_image *im = fx_msg_image(m);

		im->head.matrix_size[0] = 3;
		im->head.matrix_size[1] = 2;
		im->head.matrix_size[2] = im->head.channels = 1;
		im->head.data_type = ISMRMRD_SHORT;
		im->head.attribute_string_len = 0;
		CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_I16, 3, 2, 1, 1, &im->data), FX_OK);
		CU_ASSERT_EQUAL_FATAL(fx_image_set_meta(im, "key", "<&>"), FX_OK);
		filled = im->data;
	}
	for (int64_t j = 0; j < filled->bytes; j++)
		((unsigned char *)filled->data)[j] = (unsigned char)(j & 0x3f);
	return m;
}

static long write_stream(bool with_close)
{
	FILE *f = fopen(path, "wb");
	fx_error err = {0};
	fx_msg *m;
	long n;

	CU_ASSERT_EQUAL_FATAL(fxi_mrd_write_header(f, path, "<h/>", &err), FX_OK);
	for (int i = 0; (m = message(i)); i++) {
		CU_ASSERT_EQUAL(fxi_mrd_write(f, path, m, &err), FX_OK);
		fx_drop(m);
	}
	if (with_close)
		CU_ASSERT_EQUAL(fxi_mrd_write_close(f, path, &err), FX_OK);
	n = ftell(f);
	fclose(f);
	return n;
}

static bool same_bytes(const fx_array *a, const fx_array *b)
{
	return a && b && fx_array_same_shape(a, b) && (a->n == 0 || memcmp(a->data, b->data, (size_t)a->bytes) == 0);
}

static void check_same(fx_msg *a, fx_msg *b)
{
	CU_ASSERT_EQUAL_FATAL(fx_msg_kind(a), fx_msg_kind(b));
	if (fx_msg_acquisition(a)) {
		CU_ASSERT_EQUAL(memcmp(&fx_msg_acquisition(a)->head, &fx_msg_acquisition(b)->head,
			sizeof(ISMRMRD_AcquisitionHeader)), 0);
		CU_ASSERT(same_bytes(fx_msg_acquisition(a)->data, fx_msg_acquisition(b)->data));
		CU_ASSERT(same_bytes(fx_msg_acquisition(a)->traj, fx_msg_acquisition(b)->traj));
	} else if (fx_msg_waveform(a)) {
		CU_ASSERT_EQUAL(fx_msg_waveform(a)->head.waveform_id, 9);
		CU_ASSERT(same_bytes(fx_msg_waveform(a)->data, fx_msg_waveform(b)->data));
	} else if (fx_msg_image(a)) {
		CU_ASSERT(same_bytes(fx_msg_image(a)->data, fx_msg_image(b)->data));
		CU_ASSERT_STRING_EQUAL(fx_image_get_meta(fx_msg_image(a), "key"), "<&>");
	} else {
		CU_ASSERT_STRING_EQUAL(fx_msg_text(a), "hello");
	}
}

static void check_source(fxi_source *source)
{
	fx_error err = {0};
	fx_msg *m;
	int i = 0;

	CU_ASSERT_STRING_EQUAL(source->format, "MRD stream");
	CU_ASSERT_STRING_EQUAL(source->header_xml, "<h/>");
	while (source->next(source, &m, &err) == FX_OK && m) {
		fx_msg *expected = message(i++);

		CU_ASSERT_PTR_NOT_NULL_FATAL(expected);
		check_same(m, expected);
		fx_drop(expected);
		fx_drop(m);
	}
	CU_ASSERT_EQUAL(err.status, FX_OK);
	CU_ASSERT_EQUAL(i, 5);
	CU_ASSERT_EQUAL(source->progress(source), 1);
	/* The end stays the end. */
	CU_ASSERT_EQUAL(source->next(source, &m, &err), FX_OK);
	CU_ASSERT_PTR_NULL(m);
	source->close(source);
}

static void file_and_pipe(void)
{
	fx_error err = {0};
	fxi_source *source;
	char name[32], bytes[8192];
	long n = write_stream(true);
	int fds[2];
	FILE *f;

	CU_ASSERT_EQUAL_FATAL(fxi_input_open(path, NULL, &err, &source), FX_OK);
	CU_ASSERT_PTR_NOT_NULL(source->digest);
	check_source(source);

	CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
	f = fopen(path, "rb");
	CU_ASSERT_EQUAL_FATAL((long)fread(bytes, 1, sizeof bytes, f), n);
	fclose(f);
	CU_ASSERT_EQUAL(write(fds[1], bytes, (size_t)n), n);
	snprintf(name, sizeof name, "/dev/fd/%d", fds[0]);
	CU_ASSERT_EQUAL_FATAL(fxi_input_open(name, NULL, &err, &source), FX_OK);
	CU_ASSERT_PTR_NULL(source->digest);
	CU_ASSERT(source->progress(source) < 0);
	close(fds[0]);
	close(fds[1]);
	check_source(source);
}

/* Opens and drains `path`; the sentence, or NULL where all went well. */
static const char *complaint(int *status)
{
	static fx_error err;
	fxi_source *source;
	fx_msg *m;

	memset(&err, 0, sizeof err);
	*status = fxi_input_open(path, NULL, &err, &source);
	if (*status == FX_OK) {
		while ((*status = source->next(source, &m, &err)) == FX_OK && m)
			fx_drop(m);
		source->close(source);
	}
	CU_ASSERT_EQUAL(*status, err.status);
	return *status == FX_OK ? NULL : err.text;
}

static void cut_anywhere(void)
{
	for (long n = write_stream(true) - 1; n >= 0; n--) {
		const char *text;
		int status;

		CU_ASSERT_EQUAL_FATAL(truncate(path, n), 0);
		text = complaint(&status);
		CU_ASSERT_EQUAL(status, FX_EDATA);
		CU_ASSERT(text && strstr(text, path));
	}
}

static void no_close_is_an_error(void)
{
	const char *text;
	int status;

	write_stream(false);
	text = complaint(&status);
	CU_ASSERT_EQUAL(status, FX_EDATA);
	CU_ASSERT(text && strstr(text, "without a close message"));
}

/* Every bit of the stream flipped in turn: other data or an error, no crash, no hang, no large allocation. */
static void damaged_anywhere(void)
{
	long n = write_stream(true);

	for (long bit = 0; bit < 8 * n; bit += 3) {
		FILE *f = fopen(path, "r+b");
		int byte, status;

		fseek(f, bit / 8, SEEK_SET);
		byte = fgetc(f);
		fseek(f, bit / 8, SEEK_SET);
		fputc(byte ^ (1 << (bit % 8)), f);
		fclose(f);
		complaint(&status);
		CU_ASSERT(status == FX_OK || status == FX_EDATA || status == FX_ENOTSUP);
		f = fopen(path, "r+b");
		fseek(f, bit / 8, SEEK_SET);
		fputc(byte, f);
		fclose(f);
	}
}

static void put_bytes(const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");

	fwrite(bytes, 1, n, f);
	fclose(f);
}

static void expect(const void *bytes, size_t n, int wanted, const char *words)
{
	const char *text;
	int status;

	put_bytes(bytes, n);
	text = complaint(&status);
	CU_ASSERT_EQUAL(status, wanted);
	CU_ASSERT(text && strstr(text, words));
	if (!text || !strstr(text, words))
		printf("\n    expected '%s', got '%s'\n", words, text ? text : "no error");
}

#define EXPECT(bytes, status, words) expect(bytes, sizeof(bytes) - 1, status, words)

static void what_is_refused(void)
{
	unsigned char acquisition[6 + 4 + 2 + 340] = "\3\0\4\0\0\0<h/>\xf0\3";

	EXPECT("", FX_EDATA, "is empty");
	EXPECT("\3\0\4\0\0\0<h/>\4\1", FX_EDATA, "id 260");
	EXPECT("\3\0\4\0\0\0<h/>\4\1", FX_EDATA, "at byte 10");
	EXPECT("\3\0\4\0\0\0<h/>\377\3", FX_ENOTSUP, "reconstruction data");
	EXPECT("\3\0\4\0\0\0<h/>\3\0\4\0\0\0<h/>", FX_EDATA, "second header");
	EXPECT("\3\0\377\377\377\377<h/>", FX_EDATA, "16 MiB");
	EXPECT("\4\0", FX_EDATA, "without a header");
	EXPECT("\xf0\3 anything", FX_EDATA, "before the MRD header");
	acquisition[12 + 38] = 1;      /* active_channels 1025 */
	acquisition[12 + 39] = 4;
	expect(acquisition, sizeof acquisition, FX_EDATA, "active_channels is 1025");
	acquisition[12 + 39] = 0;
	acquisition[12 + 2 + 6] = 0x10;  /* flag 53 */
	expect(acquisition, sizeof acquisition, FX_ENOTSUP, "compressed");
	acquisition[12 + 2 + 6] = 0;
	acquisition[12 + 35] = 0xff;   /* number_of_samples */
	expect(acquisition, sizeof acquisition, FX_EDATA, "only 0 left");
}

static void what_it_looks_like(void)
{
	char dicom[132] = {0};

	memcpy(dicom + 128, "DICM", 4);
	EXPECT("\x1f\x8b\x08 something compressed", FX_EDATA, "gzip");
	EXPECT("0 0 1000 1000\n", FX_EDATA, "text");
	EXPECT("<?xml version='1.0'?><pipeline/>", FX_EDATA, "pipeline");
	expect(dicom, sizeof dicom, FX_EDATA, "DICOM");
	EXPECT("\x5c\1\0\0 and so on, a NIfTI header", FX_EDATA, "NIfTI");
	EXPECT("\0\0\0\0\1\0\0\0\x21\0\0\0\x4d\x01\0\0", FX_EDATA, "Siemens");
	EXPECT("\x7f""ELF\2\1\1\0\0\0\0\0\0\0\0\0", FX_EDATA, "7f 45 4c 46");
}

static void hdf5_needs_a_path(void)
{
	fx_error err = {0};
	fxi_source *source;
	char name[32];
	int fds[2];

	CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
	CU_ASSERT_EQUAL(write(fds[1], "\x89HDF\r\n\x1a\n and more", 17), 17);
	close(fds[1]);
	snprintf(name, sizeof name, "/dev/fd/%d", fds[0]);
	CU_ASSERT_EQUAL(fxi_input_open(name, NULL, &err, &source), FX_ENOTSUP);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "give its path"));
	close(fds[0]);
}

static void servers_messages_are_skipped(void)
{
	static const char query[] = "\6\0" "\0\0\0\0\0\0\0\0" "\1\0\0\0\0\0\0\0" "\2\0\0\0\0\0\0\0" "ab";
	unsigned char bytes[2 + 1024 + 64] = "\1\0default.xml";
	fx_error err = {0};
	fxi_source *source;
	fx_msg *m;
	size_t n = 2 + 1024;

	memcpy(bytes + n, "\2\0\3\0\0\0<c>", 9);
	n += 9;
	memcpy(bytes + n, "\3\0\4\0\0\0<h/>", 10);
	n += 10;
	memcpy(bytes + n, query, sizeof query - 1);
	n += sizeof query - 1;
	memcpy(bytes + n, "\4\0", 2);
	n += 2;
	put_bytes(bytes, n);
	CU_ASSERT_EQUAL_FATAL(fxi_input_open(path, NULL, &err, &source), FX_OK);
	CU_ASSERT_EQUAL(source->next(source, &m, &err), FX_OK);
	CU_ASSERT_PTR_NULL(m);
	source->close(source);
}

static void writing_checks(void)
{
	fx_error err = {0};
	fx_msg *m = message(0);
	FILE *f = fopen("/dev/full", "wb");

	fx_msg_acquisition(m)->head.active_channels = 2;
	CU_ASSERT_EQUAL(fxi_mrd_write(f, "full", m, &err), FX_EINVAL);
	fx_msg_acquisition(m)->head.active_channels = 3;
	err.status = FX_OK;
	CU_ASSERT_EQUAL(fxi_mrd_write(f, "full", m, &err), FX_OK);   /* still in the buffer */
	CU_ASSERT_EQUAL(fxi_mrd_write_close(f, "full", &err), FX_EIO);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "No space left"));
	fclose(f);
	fx_drop(m);
}

static CU_TestInfo tests[] = {
	{"files and pipes give what was written", file_and_pipe},
	{"a stream that is cut anywhere is refused", cut_anywhere},
	{"a missing close is an error", no_close_is_an_error},
	{"damage does no harm", damaged_anywhere},
	{"what is refused, and why", what_is_refused},
	{"foreign files are told what they look like", what_it_looks_like},
	{"HDF5 needs a path", hdf5_needs_a_path},
	{"messages for servers are skipped", servers_messages_are_skipped},
	{"writing checks what it writes", writing_checks},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_mrd_stream = {"mrd_stream", make_path, remove_path, NULL, NULL, tests};
